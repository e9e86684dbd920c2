"""Results that are on their way, with the names of torch.futures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from . import errors

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["Future", "collect_all", "wait_all"]

T = TypeVar("T")
S = TypeVar("S")


class Future(Generic[T]):
    """A result that is on its way. What then() was given runs when somebody waits for it, on the thread
    that waits.

    devices: accepted without effect.

    >>> future = kiln.futures.Future()
    >>> doubled = future.then(lambda f: 2 * f.value())
    >>> future.set_result(21)
    >>> doubled.wait()
    42
    """

    def __init__(self, *, devices: Any = None) -> None:
        self._source: Callable[[], T] | None = None
        self._is_done = False
        self._value: T | None = None
        self._error: BaseException | None = None
        self._callbacks: list[Callable[[Future[T]], Any]] = []

    @classmethod
    def _of(cls, source: Callable[[], T]) -> Future[T]:
        """A future whose result is that of source(), which waits for it."""
        future = cls()
        future._source = source
        return future

    def wait(self) -> T:
        """The result, once it is there. Raises what set_exception() or the work behind it gave.

        >>> future = kiln.futures.Future()
        >>> future.set_result("ready")
        >>> future.wait()
        'ready'
        """
        if not self._is_done:
            source, self._source = self._source, None
            if source is None:
                raise errors.RuntimeError("Future.wait: nobody has given a result, and nobody is about to")
            try:
                self._value = source()
            except BaseException as error:
                self._error = error
            self._end()
        if self._error is not None:
            raise self._error
        return cast("T", self._value)

    def value(self) -> T:
        """The same as wait()."""
        return self.wait()

    def done(self) -> bool:
        """Whether the result is there."""
        return self._is_done

    def then(self, callback: Callable[[Future[T]], S]) -> Future[S]:
        """A future whose result is that of callback(self), which runs when this one's result is there
        and somebody waits for that one's.

        callback: a function of this future.

        >>> future = kiln.futures.Future()
        >>> text = future.then(lambda f: f"{f.value()} of 10")
        >>> future.set_result(3)
        >>> text.wait()
        '3 of 10'
        """

        def run() -> S:
            self.wait()
            return callback(self)

        return Future._of(run)

    def add_done_callback(self, callback: Callable[[Future[T]], Any]) -> None:
        """Calls callback(self) when the result is there: at once, or in wait() or set_result().

        callback: a function of this future.
        """
        if self._is_done:
            callback(self)
        else:
            self._callbacks.append(callback)

    def set_result(self, result: T) -> None:
        """Gives the result. Raises RuntimeError for a second one.

        result: what wait() returns.
        """
        self._refuse_a_second()
        self._value = result
        self._end()

    def set_exception(self, result: BaseException) -> None:
        """wait() raises it.

        result: the exception.
        """
        self._refuse_a_second()
        self._error = result
        self._end()

    def _refuse_a_second(self) -> None:
        if self._is_done or self._source is not None:
            raise errors.RuntimeError("Future.set_result: the future has a result, or gets it from elsewhere")

    def _end(self) -> None:
        self._is_done = True
        callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback(self)


def collect_all(futures: Sequence[Future[Any]]) -> Future[list[Future[Any]]]:
    """A future whose result is the list of these, when all have ended.

    futures: a list of them.

    >>> a, b = kiln.futures.Future(), kiln.futures.Future()
    >>> a.set_result(1), b.set_result(2)
    (None, None)
    >>> [f.value() for f in kiln.futures.collect_all([a, b]).wait()]
    [1, 2]
    """

    def wait() -> list[Future[Any]]:
        wait_all(futures)
        return list(futures)

    return Future._of(wait)


def wait_all(futures: Sequence[Future[Any]]) -> list[Any]:
    """The results of all of them.

    futures: a list of them.

    >>> future = kiln.futures.Future()
    >>> future.set_result(7)
    >>> kiln.futures.wait_all([future])
    [7]
    """
    return [future.wait() for future in futures]
