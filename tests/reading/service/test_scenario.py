"""A file with mode = "serve" becomes a service, or says what is wrong with it."""

from __future__ import annotations

import math
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest

from simulator.errors import InputError
from simulator.predict import pass_of
from simulator.reading.merge_documents import chain_of, describes_service
from simulator.reading.scenario import load_scenario
from simulator.reading.service.engines import engine_file, engine_names, version_of
from simulator.reading.service.load import read_requests
from simulator.reading.service.scenario import ServiceReader
from simulator.reading.shipped import service_names
from simulator.report.prediction.service import load_called
from simulator.schema.accelerators import Precision
from simulator.schema.serving import (
    Admission,
    Batching,
    ClosedLoop,
    Dynamic,
    Held,
    OpenLoop,
    RateCurve,
    Routing,
    Service,
    Speculation,
    Trace,
)
from simulator.serving.load import requests_of

CHAT = "llama3-8b-chat-h100"


def service(*overrides: str, name: str = CHAT) -> Service:
    """A shipped service with some settings changed."""
    return ServiceReader(chain_of(name), name, overrides=overrides).read({})


def mistakes(*overrides: str) -> str:
    """What is said against these settings."""
    with pytest.raises(InputError) as caught:
        service(*overrides)
    return str(caught.value)


@pytest.mark.parametrize("name", service_names())
def test_every_shipped_service_is_read(name: str) -> None:
    """A shipped service has a title, limits and room for its replicas."""
    found = service(name=name)
    assert found.title
    assert found.slo.limits
    assert found.serving.tensor * found.serving.replicas <= (
        found.group.count * found.group.gpus_per_host
    )


def test_defaults_are_those_of_the_engine_on_that_accelerator() -> None:
    """VLLM batches more on an accelerator of 80 GB than on one of 24."""
    large, small = service().serving, service(name="llama3-8b-chat-l4").serving
    assert (large.max_batched_tokens, large.max_sequences) == (8192, 1024)
    assert (small.max_batched_tokens, small.max_sequences) == (2048, 256)


def test_engines_follow_their_own_rules() -> None:
    """SGLang computes prompts alone; TensorRT-LLM keeps room for whole answers."""
    sglang = service("serving.engine=sglang", "serving.version=0.5.6").serving.rules
    tensorrt = service("serving.engine=tensorrt-llm", "serving.version=1.0").serving.rules
    assert sglang.batching is Batching.PREFILL_FIRST
    assert tensorrt.admission is Admission.WHOLE


@pytest.mark.parametrize(
    ("engine", "weights", "cache"),
    [
        ("tensorrt-llm", "fp8", "fp8"),
        ("tensorrt-llm", "fp4", "fp8"),
        ("tensorrt-llm", "bf16", "bf16"),
        ("vllm", "fp8", "bf16"),
    ],
)
def test_the_cache_is_stored_as_the_engine_does_beside_such_weights(
    engine: str, weights: str, cache: str
) -> None:
    """TensorRT-LLM stores keys and values in 8 bit beside narrow weights, vLLM where it is told."""
    settings = f"serving.engine={engine}", f"serving.weights={weights}"
    assert service(*settings).serving.cache == cache
    assert service(*settings, "serving.cache=bf16").serving.cache == "bf16"


@pytest.mark.parametrize("name", engine_names())
def test_every_engine_file_is_sound(name: str) -> None:
    """Versions stand oldest first, and every accelerator finds its defaults."""
    file = engine_file(name)
    assert file.name == name
    assert [version_of(file, one.since) for one in file.version] == file.version
    assert all(one.device[0].memory == 0.0 for one in file.version)


def test_the_version_decides() -> None:
    """From 0.22 on vLLM takes 92% of the memory."""
    assert service("serving.version=0.21.1").serving.memory_fraction == 0.9
    assert service("serving.version=0.22.0rc1").serving.memory_fraction == 0.92


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("mode=serv", "is not a valid choice"),
        ("serving.engine=vlm", "did you mean 'vllm'?"),
        ("serving.version=new", "is not a version of an engine"),
        ("serving.tensor=4", "is more than the accelerators of a machine"),
        ("serving.replicas=3", "is more than the accelerators have room for"),
        ("model.name=resnet50", "writes no tokens"),
        ("serving.max_batch=8", "means nothing for a model that writes tokens"),
        ("load.samples=2", "means nothing with this kind of model"),
        ("load.cameras=2", "means nothing with poisson arrivals"),
        ("hardware.gpus=2", "is more than the machine has"),
        ("load.concurrency=4", "means nothing with poisson arrivals"),
        ("load.arrivals=closed", "is missing: closed arrivals need it"),
        ("load.think=1 s", "means nothing with poisson arrivals"),
        ("load.prompt.tokens=-1", "is out of range"),
        ("load.shared_prefix=2000", "is as long as a prompt"),
        ("slo.first_token=3", "is a bare number"),
        ("serving.max_sequences=9000", "is more than serving.max_batched_tokens"),
        ("serving.max_batched_tokens=1", "is out of range"),
        ("load.size=4", "is not a known key"),
        ("load.curve=[1]", "means nothing with poisson arrivals"),
        ("load.period=1 h", "means nothing with poisson arrivals"),
        ("serving.router=turns", "is not a valid choice"),
        ("serving.autoscaling.hold=1 s", "is missing"),
        ("serving.attention_groups=2", "does not divide a replica's accelerators"),
        ("serving.held_prompts.share=0.5", "is missing"),
    ],
)
def test_mistakes_are_named(setting: str, said: str) -> None:
    """Each mistake is told with its key and what is allowed."""
    text = mistakes(setting)
    assert said in text
    assert setting.partition("=")[0].rpartition(".")[2] in text


def test_a_version_that_is_not_known_is_told() -> None:
    """A version that nobody looked at has the nearest rules, a wider interval and one warning."""
    known, newer = service("serving.version=0.22.3"), service("serving.version=0.31")
    assert known.cautions == ()
    (caution,) = newer.cautions
    assert "vllm 0.31" in caution
    assert "those of 0.22, the nearest" in caution
    assert newer.log_sd > known.log_sd
    assert newer.overhead_log_sd > known.overhead_log_sd
    assert "those of 0.4" in service("serving.version=0.1").cautions[0]
    stated = service("serving.version=0.31", "serving.request_overhead=5 ms")
    assert stated.overhead_log_sd == 0.0


def test_an_older_version_is_slower_where_that_was_measured() -> None:
    """What vLLM of 2024 reached holds for it on a measured architecture; elsewhere that is told."""
    now, then = service("serving.version=0.19"), service("serving.version=0.6")
    assert now.figures is not None
    assert then.figures is not None
    assert then.figures.layer > now.figures.layer
    assert then.cautions == ()
    assert (then.serving.rules.batching, then.serving.chunked_prefill) == ("prefill-first", False)
    assert (now.serving.rules.batching, now.serving.chunked_prefill) == ("mixed", True)
    card = service("serving.version=0.6", "hardware.gpu=gpu/l4")
    assert card.figures is not None
    assert card.figures.layer == now.figures.layer
    assert "was measured on Ampere, Hopper, CDNA3 alone" in card.cautions[0]
    assert card.log_sd > service("hardware.gpu=gpu/l4").log_sd


def test_attention_groups_have_limits_of_their_own() -> None:
    """VLLM's limits are those of a group, SGLang's are divided among them."""
    node = ("hardware.machine=node/dgx-h100", "serving.version=0.5", "serving.tensor=8")
    for engine, times in (("vllm", 8), ("sglang", 1)):
        plain = service(*node, f"serving.engine={engine}").serving
        found = service(*node, f"serving.engine={engine}", "serving.attention_groups=8").serving
        assert found.max_batched_tokens == times * plain.max_batched_tokens
        assert found.max_sequences == times * plain.max_sequences


def test_a_latent_cache_that_every_accelerator_keeps_is_told() -> None:
    """Unless the file says how its accelerators are grouped; other models share their cache."""
    node = ("hardware.machine=node/dgx-h100", "serving.tensor=8", "serving.weights=fp8")
    latent, told = (*node, "model.name=deepseek-v3"), "8 accelerators keeps the whole latent cache"
    assert any(told in note.value for note in service(*latent).notes)
    stated = service(*latent, "serving.attention_groups=1").notes
    assert not any(told in note.value for note in (*stated, *service(*node).notes))


def test_prompts_that_are_kept_back() -> None:
    """Without a number of prompts there is none that ends the wait."""
    found = service("serving.held_prompts.iterations=20", "serving.held_prompts.share=0.9").serving
    assert found.held_prompts == Held(iterations=20, share=0.9)


def test_other_arrivals_leave_out_what_only_the_former_needed() -> None:
    """An option that makes the arrivals closed drops the file's rate, and keeps its lengths."""
    found = service("load.arrivals=closed", "load.concurrency=8")
    assert found.load.arrivals == ClosedLoop(concurrency=8)
    assert found.load.prompt == service().load.prompt
    spread = service("load.arrivals=gamma", "load.burstiness=0.5").load.arrivals
    assert spread == OpenLoop(rate=10.0, burstiness=0.5)
    told = mistakes("load.arrivals=closed")
    assert "load.rate" not in told
    assert "--set 'load.concurrency=32'" in told


def test_an_accelerator_without_bfloat16_serves_in_half_precision() -> None:
    """A V100 has no bfloat16 and computes in fp16."""
    found = service("hardware.machine=instance/lambda/gpu_8x_v100", "model.name=gpt2")
    assert pass_of(found).weights_bytes > 0.0


def test_a_job_is_no_service() -> None:
    """Where a training job is asked for, a service is refused in one line."""
    with pytest.raises(InputError, match="makes this file a service") as caught:
        load_scenario(CHAT)
    assert len(caught.value.problems) == 1


def test_which_files_are_services() -> None:
    """The key may stand in what a file extends."""
    assert describes_service(chain_of(CHAT))
    assert not describes_service(chain_of("llama3-8b-fsdp"))


def test_a_closed_loop() -> None:
    """Clients with uniform lengths, as benchmarks run them."""
    text = """
schema = 1
mode = "serve"
[hardware]
machine = "node/dgx-h100"
[model]
name = "llama-3.1-8b"
[load]
arrivals = "closed"
concurrency = 16
prompt = { tokens = 1024, spread = "uniform", ratio = 0.8 }
output = { tokens = 1024, spread = "uniform", ratio = 0.8 }
"""
    reader = ServiceReader(chain_of("-", BytesIO(text.encode())), "x")
    found = reader.read({})
    assert found.load.arrivals == ClosedLoop(concurrency=16)
    assert found.load.prompt.mean == pytest.approx(921.5)
    assert found.serving.replicas == 8


def written(tmp_path: Path, text: str) -> Path:
    """A trace with these lines."""
    path = tmp_path / "trace.csv"
    path.write_text(text)
    return path


def test_a_trace_begins_at_zero(tmp_path: Path) -> None:
    """Arrivals count from the first one; a clock's times are read too."""
    own = read_requests(
        written(tmp_path, "arrival_s,prompt_tokens,output_tokens\n5,10,2\n6.5,20,3\n")
    )
    assert (own.arrivals, own.prompts, own.outputs) == ((0.0, 1.5), (10, 20), (2, 3))
    clock = "TIMESTAMP,ContextTokens,GeneratedTokens\n"
    clock += "2023-11-16 18:15:46.6805900,374,44\n2023-11-16 18:15:50.9951690,396,109\n"
    found = read_requests(written(tmp_path, clock))
    assert found.arrivals[1] == pytest.approx(4.314579, abs=1e-6)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ("1,10,2\n0.5,10,2", "is earlier than the arrival before it"),
        ("-1,10,2", "is not a time of an arrival"),
        ("noon,10,2", "is not a time of an arrival"),
        ("0,-10,2", "is not a number of tokens"),
        ("0,10,0", "is not a number of tokens"),
        ("0,1.5,2", "is not a number of tokens"),
    ],
)
def test_wrong_traces(tmp_path: Path, rows: str, said: str) -> None:
    """Times that go back and lengths that cannot be are told with their line."""
    head = "arrival_s,prompt_tokens,output_tokens\n"
    with pytest.raises(InputError, match=said):
        read_requests(written(tmp_path, head + rows + "\n"))


def test_a_trace_as_load(tmp_path: Path) -> None:
    """A service takes its requests from the trace beside it."""
    rows = "\n".join(f"{index},{100 + index},5" for index in range(20))
    path = written(tmp_path, f"arrival_s,prompt_tokens,output_tokens\n{rows}\n")
    text = f"""
schema = 1
mode = "serve"
[hardware]
machine = "instance/lambda/gpu_1x_h100_sxm5"
[model]
name = "llama-3.1-8b"
[load]
arrivals = "trace"
trace = "{path.name}"
"""
    (tmp_path / "mine.toml").write_text(text)
    found = service(name=str(tmp_path / "mine.toml"))
    assert isinstance(found.load.arrivals, Trace)
    assert found.load.prompt.tokens == pytest.approx(109.5)


OFFICE = "llama3-8b-office-autoscaled"


def test_a_day_has_a_curve() -> None:
    """The rate is that of the peak whatever the largest share is; the usual day is told as such."""
    given = service("load.curve=[0.1, 0.4]", "load.period=1 h", name=OFFICE).load.arrivals
    assert isinstance(given, RateCurve)
    assert (given.shares, given.period) == ((0.25, 1.0), 3600.0)
    usual = service("load.arrivals=daily")
    assert isinstance(usual.load.arrivals, RateCurve)
    assert (max(usual.load.arrivals.shares), usual.load.arrivals.period) == (1.0, 86400.0)
    assert any("load.curve not given" in note.what for note in usual.notes)


def test_users_are_a_rate() -> None:
    """Users times their requests are the rate, and the mean rate of a day."""
    steady = service("load.users=5000", "load.per_user=60 /hour").load
    assert isinstance(steady.arrivals, OpenLoop)
    assert steady.arrivals.rate == pytest.approx(5000 / 60)
    assert load_called(service("load.users=5000", "load.per_user=60 /hour")).startswith(
        "83.3 requests/s of 5,000 users; "
    )
    daily = service("load.users=8640", "load.per_user=20 /day", name=OFFICE).load.arrivals
    assert isinstance(daily, RateCurve)
    assert daily.mean == pytest.approx(2.0)
    assert "load.per_user: is missing" in mistakes("load.users=5000")
    assert "load.users: is missing" in mistakes("load.per_user=20 /day")


def test_autoscaling_comes_in_whole_machines() -> None:
    """On a machine of eight accelerators replicas of four come by twos."""
    machines = ("hardware.machine=instance/aws/p5.48xlarge", "hardware.count=3")
    rules = service(*machines, "serving.tensor=4", "serving.autoscaling.least=1", name=OFFICE)
    scaling = rules.serving.autoscaling
    assert scaling is not None
    assert (scaling.least, scaling.most, scaling.together) == (2, 6, 2)


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("serving.autoscaling.most=5", "is more than there are replicas"),
        ("serving.autoscaling.least=5", "is more than there are replicas"),
        ("serving.autoscaling.target=0", "is out of range"),
        ("load.curve=[0, 0]", "has no arrivals at all"),
        ("load.arrivals=poisson", "means nothing with a load that stays the same"),
    ],
)
def test_mistakes_of_a_day_are_named(setting: str, said: str) -> None:
    """Bounds that cannot be, and a day without requests."""
    with pytest.raises(InputError, match=said):
        service(setting, name=OFFICE)


SPLIT = "qwen3-235b-h200-split"


def test_guesses_are_told_either_way() -> None:
    """Tokens an iteration, or how often a guess is right; what a guess costs is a guess."""
    said = service("serving.speculation={drafts=3, accepted=2.4, draft=0}").serving.speculation
    assert said == Speculation(drafts=3, accepted=2.4, draft=0.0)
    often = service("serving.speculation={drafts=3, acceptance=0.8}")
    assert often.serving.speculation is not None
    assert often.serving.speculation.accepted == pytest.approx(2.952)
    assert any("speculation.draft not given" in note.what for note in often.notes)


def test_no_replicas_for_prompts_are_none_of_them() -> None:
    """A service with prompts apart is held beside one whose replicas compute their own."""
    assert service("serving.prefill.replicas=0", name=SPLIT).serving.prefill is None
    ways = ServiceReader(chain_of(SPLIT), SPLIT, overrides=("goal.prefill=[0,1]",)).candidates()
    apart = [way.get("serving.prefill.replicas") for way in ways if way["serving.tensor"] == 4]
    rooms = [way["serving.replicas"] for way in ways if way["serving.tensor"] == 4]
    assert (apart, rooms) == ([0, 1], [2, 1])


def test_replicas_for_prompts_leave_room_for_the_others() -> None:
    """On eight accelerators two prompts' replicas of two leave one of four for answers."""
    found = service("serving.prefill={replicas=2, tensor=2}", "serving.replicas=1", name=SPLIT)
    assert found.serving.devices == 8
    machines = ("hardware.machine=instance/aws/p5.48xlarge", "serving.tensor=2")
    usual = service(*machines, "serving.prefill={replicas=1}")
    assert usual.serving.replicas == 3


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("serving.prefill.replicas=2", "is more than the accelerators have room for"),
        ("serving.prefill.tensor=16", "is more than the accelerators of a machine"),
        ("serving.autoscaling={target=4}", "cannot be autoscaled together"),
        ("serving.speculation={drafts=3}", "needs either accepted"),
        ("serving.speculation={drafts=3, accepted=2, acceptance=0.5}", "needs either accepted"),
        ("serving.speculation={drafts=2, accepted=3.5}", "is out of range"),
        ("load.prefix_hit_rate=1.5", "is out of range"),
    ],
)
def test_mistakes_of_guesses_and_of_two_kinds_of_replicas(setting: str, said: str) -> None:
    """Each is told with its key."""
    with pytest.raises(InputError, match=said):
        service(setting, name=SPLIT)


CLASSIFIER = "image-classifier-t4"


def test_a_model_that_answers_in_one_pass_is_batched() -> None:
    """Each accelerator is a replica; 16 bit there and 32 on cores, if nothing is said."""
    many = service("hardware.machine=instance/aws/g4dn.12xlarge", name=CLASSIFIER).serving
    assert (many.replicas, many.max_batched_tokens, many.weights) == (4, 32, Precision.FP16)
    assert many.dynamic == Dynamic(delay=0.005)
    assert many.host_threads == 12
    assert many.router is Routing.LEAST
    told = service("serving.router=random", name=CLASSIFIER).serving
    assert told.router is Routing.RANDOM
    cores = service(name="image-classifier-cpu")
    assert (cores.serving.replicas, cores.serving.weights) == (1, Precision.FP32)
    assert cores.memory == cores.group.host.ram


def test_cameras_send_at_equal_gaps() -> None:
    """Thirty-two sources at five pictures a second each, wherever they begin."""
    ways = service(name="cameras-32").load.arrivals
    assert ways == OpenLoop(rate=160.0, burstiness=math.inf, sources=32)
    found = np.asarray(requests_of(service(name="cameras-32").load, 3200, seed=1).arrivals)
    assert found[-1] - found[0] == pytest.approx(20.0, rel=0.01)
    # From one round to the next every camera comes again after the same time.
    assert found[32:] - found[:-32] == pytest.approx(np.full(3168, 0.2))


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("serving.tensor=2", "cannot be above 1"),
        ("serving.cache=fp8", "means nothing for a model that answers in one pass"),
        ("serving.preferred_batches=[64]", "is not a size of a batch"),
        ("serving.static_batches=true", "means nothing with static batches"),
        ("load.samples=64", "is more than a batch"),
        ("load.prompt.tokens=4", "means nothing with this kind of model"),
        ("slo.per_token=1 s", "means nothing for a model that answers in one pass"),
        ("model.name=resnet5", "model.name: .*did you mean 'resnet50'"),
        ("model.name=k-means", "has no forward pass whose time is known"),
        ("serving.weights=bf16", "serving.weights: is not a format of gpu/t4"),
        ("load.arrivals=cameras", "is missing: cameras arrivals need it"),
        ("serving.replicas=2", "is more than the accelerators have room for"),
    ],
)
def test_mistakes_of_batches_are_named(setting: str, said: str) -> None:
    """Settings of tokens, sizes that cannot be, names that are none."""
    with pytest.raises(InputError, match=said):
        service(setting, name=CLASSIFIER)


def test_cores_compute_in_full_precision_unless_measured() -> None:
    """Other formats on cores need measured batches."""
    with pytest.raises(InputError, match="is not modelled on cores"):
        service("serving.weights=bf16", name="image-classifier-cpu")
    timed = 'model.step_times=[{batch_size=1, time="9 ms"}]'
    found = service("serving.weights=bf16", timed, name="image-classifier-cpu")
    assert found.one_pass is not None
