# SPDX-License-Identifier: Apache-2.0
"""Every way in which one Python function comes to run inside another."""
import asyncio
import ctypes
import functools
import sys

from lab import capture, capture_with_gil, check, here


def recursion(depth):
    if depth == 0:
        check("recursion", capture(), here())
        return check("recursion, GIL held", capture_with_gil(), here())
    x = 1
    return recursion(
        depth
        - x
    )


def twins(times):
    """Alike to the last instruction: up to 3.10 their frames lie in the same places, one after the other."""
    source = "def %s(depth):\n  return %s(depth - 1) if depth else check('twins', capture(), here())"
    made = []
    for name in ("left", "right"):
        space = dict(globals())
        exec(source % (name, name), space)
        made.append(space[name])
    for i in range(2 * times):
        made[i % 2](3)


def last():
    check("last", capture(), here())


def calls(function):
    return function()


def by_the_same_call(times):
    """Once within the interpreter loop, once by a call of its own: in 3.11 the frames differ in that alone."""
    functions = last, functools.partial(last)
    for i in range(2 * times):
        calls(functions[i % 2])


# ---- generators -------------------------------------------------------------------------


def generator():
    try:
        yield check("generator", capture(), here())
        check("generator resumed", capture(), here())
        yield 2
    finally:
        check("generator's end", capture(), here())


def delegating():
    result = yield from generator()
    check("behind yield from", capture(), here())
    yield result


def inner(times):
    for i in range(times):
        check("generator beneath yield from", capture(), here())
        yield i
    return times


def outer(times):
    return (yield from inner(times))


class Iterable:
    def __iter__(self):
        for i in range(2):
            check("__iter__", capture(), here())
            yield i


def generators():
    list(generator())
    list(delegating())
    started = delegating()
    next(started)
    started.close()
    started = delegating()
    next(started)
    try:
        started.throw(ValueError("x"))
    except ValueError:
        check("after throw", capture(), here())
    started = generator()
    next(started)
    del started
    try:
        generator().throw(KeyError("before it began"))
    except KeyError:
        check("after throw into a new generator", capture(), here())
    list(outer(2))
    list(Iterable())
    sum(x for x in Iterable())
    a, b = Iterable()
    return [*Iterable(), a, b]


def sending():
    def echo():
        got = None
        while True:
            got = yield check("send", capture(), here()), got
    running = echo()
    next(running)
    for i in range(3):
        running.send(i)
    running.close()


# ---- comprehensions -----------------------------------------------------------------------


def comprehensions():
    [check("list", capture(), here()) for _ in range(2)]
    {i: check("dict", capture(), here()) for i in range(2)}
    {check("set", capture(), here()) for _ in range(2)}
    list(check("generator expression", capture(), here()) for _ in range(2))
    return [[check("nested", capture(), here())
             for _ in range(2)]
            for _ in range(2)]


# ---- through C ------------------------------------------------------------------------------

COMPARE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
libc = ctypes.CDLL(None)


def compare(_a, _b):
    check("callback of qsort", capture(), here())
    return 0


def through_c():
    sorted([3, 1, 2], key=lambda v: (check("sorted", capture(), here()), v)[1])
    list(map(lambda v: check("map", capture(), here()), [1, 2]))
    functools.reduce(lambda a, v: check("reduce", capture(), here()), [1, 2, 3])
    max([1, 2], key=lambda v: (check("max", capture(), here()), v)[1])
    list(filter(lambda v: check("filter", capture(), here()), [1, 2]))
    functools.partial(recursion, 3)()
    array = (ctypes.c_int * 3)(3, 1, 2)
    libc.qsort(array, 3, 4, COMPARE(compare))
    sorted([1], key=lambda _: sorted([1], key=lambda _: list(map(recursion, [2]))))
    cached.cache_clear()
    cached(1)
    decorated(1, z=3)


@functools.lru_cache(None)
def cached(_v):
    return check("lru_cache", capture(), here())


def decorator(function):
    @functools.wraps(function)
    def wrapper(*a, **kw):
        return function(*a, **kw)
    return wrapper


@decorator
@decorator
def decorated(_a, *, z=1):
    check("decorated", capture(), here())
    return z


# ---- classes ----------------------------------------------------------------------------------


def class_bodies():
    class Outer:
        check("class body", capture(), here())

        class Inner:
            check("nested class body", capture(), here())

        @staticmethod
        def static():
            check("static method", capture(), here())

        @classmethod
        def of_class(cls):
            check("class method", capture(), here())
            cls.static()

        def __init_subclass__(cls):
            check("__init_subclass__", capture(), here())

        def __set_name__(self, owner, name):
            check("__set_name__", capture(), here())

    class Derived(Outer):
        member = Outer()

    Derived.of_class()


class Point:
    member = 1

    def __new__(cls, *_a):
        check("__new__", capture(), here())
        return object.__new__(cls)

    def __init__(self, *_a):
        check("__init__", capture(), here())

    @property
    def prop(self):
        return check("property", capture(), here())

    def __getitem__(self, _i):
        return check("__getitem__", capture(), here())

    def __add__(self, _o):
        return check("__add__", capture(), here())

    def __getattr__(self, _n):
        return check("__getattr__", capture(), here())

    def __setattr__(self, n, v):
        check("__setattr__", capture(), here())
        object.__setattr__(self, n, v)

    def __lt__(self, _o):
        check("__lt__", capture(), here())
        return True

    def __hash__(self):
        check("__hash__", capture(), here())
        return 1

    def __eq__(self, _o):
        check("__eq__", capture(), here())
        return True

    def __bool__(self):
        check("__bool__", capture(), here())
        return True

    def __repr__(self):
        check("__repr__", capture(), here())
        return "x"

    def __call__(self, *_a):
        return check("__call__", capture(), here())

    def __enter__(self):
        check("__enter__", capture(), here())

    def __exit__(self, *_a):
        check("__exit__", capture(), here())
        return True

    def __del__(self):
        check("__del__", capture(), here())


def dunder_methods():
    point = Point()
    point.prop, point[0], point + 1, point.other, point(), point < point
    point.set = 1
    if point:
        "%r" % point
    {point: 1}[point]
    sorted([point, point])
    with point:
        raise ValueError
    del point


class Plain:
    def __init__(self, value):
        self.value = value
        check("specialised __init__", capture(), here())

    def method(self, a, *_rest, k=None, **_more):
        check("specialised method", capture(), here())
        return a, k

    @property
    def prop(self):
        return check("specialised property", capture(), here())

    def __getitem__(self, _i):
        return check("specialised __getitem__", capture(), here())


class Derived(Plain):
    def __init__(self, value):
        super().__init__(value)
        self.other = Plain(value)
        check("behind super().__init__", capture(), here())


class Meta(type):
    def __call__(cls, *a):
        made = super().__call__(*a)
        check("metaclass __call__", capture(), here())
        return made


class Made(metaclass=Meta):
    def __init__(self):
        self.plain = Plain(1)


def hot(times):
    """Often enough for the interpreter to specialise what it runs."""
    args, keywords = (1, 2), {"k": 3, "z": 4}
    plain = Plain(0)
    for i in range(times):
        Plain(i)
        Derived(i)
        Made()
        plain.prop, plain[0]
        plain.method(1)
        plain.method(1, 2, k=3)
        plain.method(*args, **keywords)
        [Plain(j) for j in range(1)]
        for _ in outer(2):
            pass
        (lambda: Plain(1))()
        decorated(i, z=i)


# ---- coroutines ---------------------------------------------------------------------------------


async def leaf():
    check("coroutine", capture(), here())
    await asyncio.sleep(0)
    check("coroutine resumed", capture(), here())


async def agenerator():
    try:
        for i in range(2):
            check("async generator", capture(), here())
            yield i
    finally:
        check("async generator's end", capture(), here())


class AsyncContext:
    async def __aenter__(self):
        check("__aenter__", capture(), here())

    async def __aexit__(self, *_a):
        await leaf()
        check("__aexit__", capture(), here())
        return True


async def nested_coroutines():
    await leaf()
    async for _ in agenerator():
        check("async for", capture(), here())
    [check("async comprehension", capture(), here()) async for _ in agenerator()]
    async with AsyncContext():
        raise ValueError
    begun = agenerator()
    await begun.__anext__()
    try:
        await begun.athrow(KeyError)
    except KeyError:
        check("after athrow", capture(), here())
    begun = agenerator()
    await begun.__anext__()
    await begun.aclose()
    await asyncio.gather(leaf(), leaf(), asyncio.wait_for(leaf(), 5))


async def immediate(n):
    check("coroutine by hand", capture(), here())
    return n


async def immediate_outer(n):
    return await immediate(n)


def coroutines():
    asyncio.run(nested_coroutines())
    for i in range(10):
        begun = immediate_outer(i)
        try:
            begun.send(None)
        except StopIteration:
            pass


# ---- control flow -----------------------------------------------------------------------------


def exceptions():
    for _ in range(3):
        while True:
            try:
                raise KeyError
            except KeyError:
                check("except", capture(), here())
                try:
                    raise ValueError
                except ValueError:
                    check("nested except", capture(), here())
                break
            finally:
                check("finally", capture(), here())
    try:
        [][1]
    except IndexError as error:
        check("traceback's frame", capture(), error.__traceback__.tb_frame)


def many_lines(_a=None, _b=None):
    return check("arguments over many lines", capture(), here())


def lines():
    many_lines(
        _a=1,
        _b=[many_lines(),
            many_lines(
                _a=many_lines()
            )],
    )
    return (many_lines() or
            many_lines()
            or [many_lines(),

                many_lines()])


def all_of_it(rounds):
    for depth in (0, 5, 60, 200):
        recursion(depth)
    for _ in range(rounds):
        for case in (generators, sending, comprehensions, through_c, class_bodies, dunder_methods,
                     coroutines, exceptions, lines):
            case()
    twins(rounds * 10)
    by_the_same_call(rounds * 10)
    hot(rounds * 10)
    sys.stdout.flush()
