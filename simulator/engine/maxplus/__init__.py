"""The exact recursion for a pipeline in which nothing slows anything else.

Where no unit can ever be full (`unshared`), each task takes a fixed time, and when it starts is
the latest of what it waits for: worker free, credit free, batch received, copy engine free, device
free. That is a recursion in maxima and sums [1]_, batch by batch, without a queue of events. It
takes the same sums in the same order as the event engine, so both give the same floats.

`pipeline` says whether a run is such a one, `single` runs it.

References
----------
.. [1] F. Baccelli, G. Cohen, G. J. Olsder, J.-P. Quadrat, "Synchronization and Linearity", Wiley,
   1992, https://www.rocq.inria.fr/metalau/cohen/documents/BCOQ-book.pdf
"""
