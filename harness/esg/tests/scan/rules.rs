//! Small steps for every rule of a scan, each with its result. Reads, writes and deletes were
//! compared with CPython's.
use super::cases::check;

#[test]
fn what_is_read_is_what_is_not_surely_bound() {
    check(&[
        ("if a:\n    x = 1\nelif b:\n    x = 2\nelse:\n    x = 3\ny = x", "a b", "", "x y", "", ""),
        ("if a:\n    x = 1\nelif b:\n    x = 2\ny = x", "a b x", "", "x y", "", ""),
        ("while a:\n    x = 1\n    break\nelse:\n    x = 2\ny = x", "a", "", "x y", "", ""),
        ("for i in xs:\n    break\nelse:\n    z = 1\nw = z", "xs z", "", "i w z", "", ""),
        ("while True:\n    x = f()\n    if x:\n        break\ny = x", "f", "", "x y", "", ""),
        ("try:\n    x = f()\nexcept E:\n    x = 0\ny = x", "E f", "", "x y", "", ""),
        ("try:\n    x = f()\nexcept E:\n    raise\ny = x", "E f", "", "x y", "", ""),
        ("try:\n    pass\nfinally:\n    x = 1\ny = x", "", "", "x y", "", ""),
        ("try:\n    a = f()\n    b = g()\nexcept E:\n    c = a", "E a f g", "", "a b c", "", ""),
        ("try:\n    x = f()\nexcept E:\n    pass\nelse:\n    y = x", "E f", "", "x y", "", ""),
        ("a and (x := b)\ny = x", "a b x", "", "x y", "", ""),
        ("y = (x := a) or x", "a", "", "x y", "", ""),
        ("y = x if (x := a) else x", "a", "", "x y", "", ""),
        ("y = a < (x := b) < c\nz = x", "a b c", "", "x y z", "", ""),
        ("y = a < b < (x := c)\nz = x", "a b c x", "", "x y z", "", ""),
        ("assert (x := a), m\ny = x", "a m", "", "x y", "", ""),
        ("while (x := f()):\n    pass\ny = x", "f", "", "x y", "", ""),
        ("for x in xs:\n    pass\nelse:\n    x = 0\ny = x", "xs", "", "x y", "", ""),
        (
            "try:\n    x = f()\nexcept (E, F):\n    x = 1\nfinally:\n    z = x",
            "E F f x",
            "",
            "x z",
            "",
            "",
        ),
        (
            "for i in xs:\n    if i:\n        continue\n    k = i\nelse:\n    k = 0\nm = k",
            "xs",
            "",
            "i k m",
            "",
            "",
        ),
    ]);
}

#[test]
fn values_come_before_targets() {
    check(&[
        ("x = x", "x", "", "x", "", ""),
        ("x, y = y, x", "x y", "", "x y", "", ""),
        ("class A:\n    x = x", "x", "", "A", "", ""),
        ("ys = [x for x in x]", "x", "", "ys", "", ""),
        ("def f(f=f):\n    pass", "f", "", "f", "", ""),
        ("class A(A):\n    pass", "A", "", "A", "", ""),
        ("@f\ndef f():\n    pass", "f", "", "f", "", ""),
        ("for x in x:\n    pass", "x", "", "x", "", ""),
        ("with x as x:\n    pass", "x", "", "x", "", ""),
        ("d[k] = k = v", "d k v", "", "k", "d", ""),
        ("k = d[k] = v", "d v", "", "k", "d", ""),
        ("x: x = x", "x", "", "x", "", ""),
        ("(x := x + 1)", "x", "", "x", "", ""),
        ("x[x := 0] = x", "x", "", "x", "x", ""),
    ]);
}

#[test]
fn comprehensions_have_their_own_names() {
    check(&[
        ("ys = {k: v for k, v in d.items()}\nz = k", "d k", "", "ys z", "d", ""),
        ("ys = [(a, b) for a in xs for b in a]", "xs", "", "ys", "", ""),
        ("ys = [b for a in xs for b in c if d]", "c d xs", "", "ys", "", ""),
        ("any((hit := x) for x in xs)\ny = hit", "hit xs", "", "hit y", "", ""),
        ("ys = [[y for y in x] for x in x]", "x", "", "ys", "", ""),
        ("f = lambda: [i for i in xs]", "", "xs", "f", "", ""),
        ("ys = list(x * k for x in xs)", "k xs", "", "ys", "", ""),
    ]);
}

#[test]
fn a_body_binds_the_module_only_if_it_says_so() {
    check(&[
        ("def f():\n    global x\n    x = 1", "", "", "f", "", ""),
        ("def f():\n    global x\n    x = 1\nf()\ny = x", "", "", "f x y", "", ""),
        ("def f():\n    global x\n    del x\nf()", "x", "", "f", "", "x"),
        ("def f():\n    global x\n    x += 1\nf()", "x", "", "f x", "x", ""),
        (
            "def f():\n    def g():\n        global x\n        x = a\n    g()\nf()",
            "a",
            "",
            "f x",
            "",
            "",
        ),
        ("class A:\n    global x\n    x = 1\ny = x", "", "", "A x y", "", ""),
        ("class A:\n    x = 1\n    class B:\n        y = x", "x", "", "A", "", ""),
        (
            "x = 1\nclass A:\n    x = 2\n    def f(self):\n        return x\nA().f()",
            "",
            "",
            "A x",
            "",
            "",
        ),
        ("class A:\n    y = [x for x in xs]\n    z = y", "xs", "", "A", "", ""),
        ("class A:\n    k = 1\n    f = lambda self: k", "", "k", "A", "", ""),
        (
            "def f():\n    x = 1\n    class B:\n        y = x\n    return B\nb = f()",
            "",
            "",
            "b f",
            "",
            "",
        ),
        ("class __A:\n    def f(self):\n        return __x\n__A().f()", "_A__x", "", "__A", "", ""),
    ]);
}

#[test]
fn what_is_unbound_is_read() {
    check(&[
        ("del x, y", "x y", "", "", "", "x y"),
        ("x = 1\ndel x", "", "", "x", "", "x"),
        ("x = 1\nif a:\n    del x\ny = x", "a", "", "x y", "", "x"),
        ("del d[k]", "d k", "", "", "d", ""),
        ("del o.a", "o", "", "", "o", ""),
        ("e = 1\ntry:\n    f()\nexcept E as e:\n    pass\ny = e", "E f", "", "e y", "", "e"),
        ("for i in xs:\n    pass\ndel i", "i xs", "", "i", "", "i"),
        ("with a as (x, y):\n    del x", "a", "", "x y", "", "x"),
    ]);
}

#[test]
fn patterns_bind_what_they_capture() {
    check(&[
        ("match x:\n    case {'a': a, **rest}:\n        y = rest", "x", "", "a rest y", "", ""),
        ("match x:\n    case P(a, b=c):\n        y = a", "P x", "", "a c y", "", ""),
        ("match x:\n    case k.v:\n        pass", "k x", "", "", "", ""),
        ("match x:\n    case _:\n        y = 1\nz = y", "x", "", "y z", "", ""),
        ("match x:\n    case [1, a] | [a, 2]:\n        y = a", "x", "", "a y", "", ""),
        (
            "match x:\n    case a if a > b:\n        y = a\n    case c:\n        y = c\nz = y",
            "b x",
            "",
            "a c y z",
            "",
            "",
        ),
        ("match a, b:\n    case (1, c) as d:\n        pass", "a b", "", "c d", "", ""),
    ]);
}

#[test]
fn annotations_and_type_parameters() {
    check(&[
        ("def f[T: B](a: T) -> R:\n    return a", "R", "B", "f", "", ""),
        ("class A[T](Base[T]):\n    x: T", "Base", "", "A", "", ""),
        ("type P[T] = list[T | Q]", "", "Q", "P", "", ""),
        ("def f():\n    x: T = a\nf()", "a", "", "f", "", ""),
        ("def f(a: X = d) -> Y:\n    pass", "X Y d", "", "f", "", ""),
        ("x.y: T = v", "T v x", "", "", "x", ""),
    ]);
}

#[test]
fn what_the_source_does_not_determine_is_opaque() {
    check(&[
        ("eval('x + y')", "x y", "", "", "", ""),
        ("y = globals()['x']", "x", "", "y", "", ""),
        ("exec('for i in xs: t = i')\nz = t", "t xs", "", "i t z", "", ""),
        ("globals().update(a=b)\nc = a", "b", "", "a c", "", ""),
    ]);
}

#[test]
fn a_body_runs_once_its_value_goes_somewhere() {
    check(&[
        ("def f():\n    return k\ng = f", "k", "", "f g", "", ""),
        ("def f():\n    return k\nhs = {'a': f}", "k", "", "f hs", "", ""),
        ("f = lambda: k\nf()", "k", "", "f", "", ""),
        ("def f():\n    yield k\ng = f()", "", "k", "f g", "", ""),
        ("def f():\n    yield k\nxs = list(f())", "k", "", "f xs", "", ""),
        (
            "def outer():\n    def inner():\n        return k\n    return inner\nouter()()",
            "k",
            "",
            "outer",
            "",
            "",
        ),
        (
            "class A:\n    def __enter__(self):\n        return k\n    def __exit__(self, *a):\n        pass\nwith A() as x:\n    pass",
            "k",
            "",
            "A x",
            "",
            "",
        ),
        (
            "class A:\n    @staticmethod\n    def f():\n        return k\nA.f()",
            "k",
            "",
            "A",
            "",
            "",
        ),
        ("xs = sorted(ys, key=lambda y: w[y])", "w ys", "", "xs", "", ""),
        (
            "from functools import partial\ndef f(a):\n    return a + k\ng = partial(f, 1)",
            "k",
            "",
            "f g partial",
            "",
            "",
        ),
        ("def f():\n    return g()\ndef g():\n    return k\nf()", "k", "", "f g", "", ""),
        ("def f(n):\n    return n and f(n - k)\nf(m)", "k m", "", "f", "", ""),
    ]);
}

#[test]
fn builtins_are_read_until_bound() {
    check(&[
        ("y = len(x)\nlen = 3", "x", "", "len y", "", ""),
        ("print = log\nprint(x)", "log x", "", "print", "", ""),
    ]);
}

#[test]
fn what_may_be_changed_in_place() {
    check(&[
        ("a.b.c = v", "a v", "", "", "a", ""),
        ("a[0][1].append(v)", "a v", "", "", "a", ""),
        ("x = y = z\ny.pop()", "z", "", "x y", "z", ""),
        ("a, b = xs\nb.add(1)", "xs", "", "a b", "xs", ""),
        ("d = {'k': xs}\nd['k'].append(1)", "xs", "", "d", "xs", ""),
        ("d = {'k': xs}\nd['j'] = 1", "xs", "", "d", "", ""),
        ("ys = xs + [1]\nys.append(2)", "xs", "", "ys", "", ""),
        ("for k, v in d.items():\n    v.clear()", "d", "", "k v", "d", ""),
        ("with a as b:\n    b.write(x)", "a x", "", "b", "a", ""),
        ("def f(a):\n    a.append(1)\nf(xs)", "xs", "", "f", "xs", ""),
        ("def f(a, b):\n    a.append(1)\nf(xs, ys)", "xs ys", "", "f", "xs", ""),
        ("def f():\n    return xs\nf().append(1)", "xs", "", "f", "xs", ""),
        ("setattr(o, 'a', v)", "o v", "", "", "o", ""),
        ("x = next(it)", "it", "", "x", "it", ""),
        ("[r.pop() for r in rows]", "rows", "", "", "rows", ""),
        ("ys = [x for x in xs]\nys[0].a = 1", "xs", "", "ys", "xs", ""),
        (
            "class A:\n    def __init__(self, xs):\n        self.xs = xs\n    def add(self):\n        self.xs.append(1)\na = A(ys)\na.add()",
            "ys",
            "",
            "A a",
            "ys",
            "",
        ),
        (
            "class K:\n    n = 0\n    def up(self):\n        K.n += by\nK().up()",
            "by",
            "",
            "K",
            "",
            "",
        ),
        ("import os\nos.environ['a'] = v", "v", "", "os", "os", ""),
        ("x = a\nx += b", "a b", "", "x", "a", ""),
        ("y = f(xs)\ny.append(1)", "f xs", "", "y", "", ""),
        ("(ys := xs).append(1)", "xs", "", "ys", "xs", ""),
        ("z = xs if c else ys\nz.append(1)", "c xs ys", "", "z", "xs ys", ""),
        ("list.append(xs, 1)", "xs", "", "", "xs", ""),
        ("def f(a=xs):\n    a.append(1)\nf()", "xs", "", "f", "xs", ""),
        ("match xs:\n    case [a, *rest]:\n        a.append(1)", "xs", "", "a rest", "xs", ""),
    ]);
}
