"use strict";
(() => {
  const hint = document.getElementById("hint");
  const show = (event) => {
    const at = event.target.closest("[data-hint]");
    hint.hidden = !at;
    if (!at) return;
    hint.textContent = at.dataset.hint;
    const right = event.clientX + 14 + hint.offsetWidth > innerWidth;
    hint.style.left = `${right ? event.clientX - 14 - hint.offsetWidth : event.clientX + 14}px`;
    hint.style.top = `${event.clientY + 14}px`;
  };
  document.addEventListener("pointermove", show);
  document.addEventListener("pointerdown", show);
  for (const figure of document.querySelectorAll("[data-zoom]")) {
    const svg = figure.querySelector("svg.zoomed");
    const labels = [...figure.querySelectorAll(".ticks span")];
    const told = (seconds) => {
      const [size, unit] = [[1, "s"], [1e-3, "ms"], [1e-6, "µs"]].find(([size]) => seconds >= size) || [1e-9, "ns"];
      return seconds ? `${Number((seconds / size).toPrecision(4 + Math.floor(-Math.log10(part))))} ${unit}` : "0 s";
    };
    const [, , width, height] = svg.getAttribute("viewBox").split(" ").map(Number);
    let from = 0, part = 1;
    const apply = () => {
      part = Math.min(1, Math.max(0.002, part));
      from = Math.min(1 - part, Math.max(0, from));
      svg.setAttribute("viewBox", `${from * width} 0 ${part * width} ${height}`);
      labels.forEach((label, place) => {
        label.textContent = told((from + (part * place) / (labels.length - 1)) * figure.dataset.seconds);
      });
    };
    const zoom = (factor, at) => { from += at * part * (1 - factor); part *= factor; apply(); };
    figure.querySelector("[data-in]").addEventListener("click", () => zoom(0.5, 0.5));
    figure.querySelector("[data-out]").addEventListener("click", () => zoom(2, 0.5));
    figure.querySelector("[data-all]").addEventListener("click", () => { from = 0; part = 1; apply(); });
    svg.addEventListener("wheel", (event) => {
      if (!event.ctrlKey) return;
      event.preventDefault();
      const box = svg.getBoundingClientRect();
      zoom(event.deltaY < 0 ? 0.8 : 1.25, (event.clientX - box.left) / box.width);
    }, { passive: false });
    let last = null;
    svg.addEventListener("pointerdown", (event) => { last = event.clientX; });
    addEventListener("pointerup", () => { last = null; });
    svg.addEventListener("pointermove", (event) => {
      if (last === null) return;
      from -= ((event.clientX - last) / svg.getBoundingClientRect().width) * part;
      last = event.clientX;
      apply();
    });
  }
})();
