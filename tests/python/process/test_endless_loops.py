"""Ctrl-C ends an endless loop in a graph, and other work continues."""

from __future__ import annotations

import textwrap

from process.interrupts import interrupted, start

LOOP = """
    import hybridnet as mx
    from hybridnet.contrib.control_flow import while_loop

    class Loop(mx.gluon.HybridBlock):
        def hybrid_forward(self, F, i, x):
            return while_loop({test}, lambda i, x: (i + 1, x * 0.999), (i, x), {limit}, has_outputs=False)

    loop = Loop()
    loop.hybridize()
    i, x = mx.nd.zeros((1,)), mx.nd.ones((8,))
"""
FOR_EVER = {"test": "lambda i, x: i >= 0", "limit": "None"}


def program(body: str, **loop: str) -> str:
    return textwrap.dedent(LOOP).format(**loop) + textwrap.dedent(body)


def test_an_interrupt_ends_the_wait_for_an_endless_loop_and_then_the_loop() -> None:
    process = start(
        program(
            """
            results = loop(i, x)  # returns although the loop has no end
            try:
                print("called", flush=True)
                results[1].wait_to_read()
            except KeyboardInterrupt:
                print("interrupted", flush=True)
            print((mx.nd.ones((2,)) + 1).asnumpy().tolist(), flush=True)
            try:
                results[1].asnumpy()
            except mx.base.MXNetError as error:
                print("iteration" in str(error) and "an interrupt" in str(error), flush=True)
            """,
            **FOR_EVER,
        )
    )
    assert process.stdout
    assert process.stdout.readline() == "called\n"
    out, err = interrupted(process, after=1)
    assert process.returncode == 0, err
    assert out.split("\n")[:3] == ["interrupted", "[2.0, 2.0]", "True"], err


def test_an_interrupt_also_ends_endless_loops_that_had_not_begun() -> None:
    process = start(
        program(
            """
            first = loop(i, x)
            second = loop(first[0], first[1])  # waits for the first
            try:
                print("called", flush=True)
                second[1].wait_to_read()
            except KeyboardInterrupt:
                print("interrupted", flush=True)
            third = loop(i - 1, x)  # another call, whose condition never holds
            print(third[0].asscalar(), flush=True)
            try:
                second[1].asnumpy()
            except mx.base.MXNetError as error:
                print("an interrupt" in str(error), flush=True)
            """,
            **FOR_EVER,
        )
    )
    assert process.stdout
    assert process.stdout.readline() == "called\n"
    out, err = interrupted(process, after=1)
    assert process.returncode == 0, err
    assert out == "interrupted\n-1.0\nTrue\n", err


def test_the_end_of_the_process_ends_an_endless_loop() -> None:
    process = start(program('loop(i, x)\nloop(i, x)\nprint("called", flush=True)\n', **FOR_EVER))
    try:
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert (process.returncode, out) == (0, "called\n"), err


def test_a_loop_that_ends_soon_after_an_interrupt_keeps_its_results() -> None:
    process = start(
        program(
            """
            loop(i, x)[0].wait_to_read()  # compiled
            pending = []
            try:
                print("calling", flush=True)
                while True:
                    pending.append(loop(i, x)[0])
            except KeyboardInterrupt:
                print([int(count.asscalar()) for count in pending] == [20000] * len(pending), flush=True)
            """,
            test="lambda i, x: i < 20000",
            limit="20000",
        )
    )
    assert process.stdout
    assert process.stdout.readline() == "calling\n"
    out, err = interrupted(process)
    assert process.returncode == 0, err
    assert out == "True\n"
