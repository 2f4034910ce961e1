//! The steps that the suite runs.

/// The steps that the suite of executors runs, in the executor's language. The fields say what each
/// has to do; a step that is `None` is left out, with the clauses that need it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Sources {
    /// Binds `x` to 1.
    pub bind: &'static str,
    /// Binds `x` to 1 and `y` to the value of `x`.
    pub bind_both: &'static str,
    /// Binds `y` to the value of `x`.
    pub read: &'static str,
    /// Binds `xs` to a new list with 1.
    pub list: &'static str,
    /// Binds `xs` to a new list with 1, and `ys` to the same list.
    pub share: &'static str,
    /// Appends 2 to the list `xs`, in place.
    pub append: &'static str,
    /// As `append`, and fails then.
    pub append_fails: &'static str,
    /// Binds `n` to the length of the list `ys`.
    pub length: &'static str,
    /// Removes the name `x`.
    pub delete: &'static str,
    /// Prints `1` and a newline.
    pub print: &'static str,
    /// Binds `it` to a value that cannot be stored, made of the list `xs`.
    pub unserializable: Option<&'static str>,
    /// Binds `t` to a clock reading.
    pub clock: Option<&'static str>,
    /// Performs an untracked operation.
    pub untracked: Option<&'static str>,
    /// Ends the worker.
    pub crash: Option<&'static str>,
    /// Never ends.
    pub endless: Option<&'static str>,
    /// Writes a file `f` in scratch.
    pub write_file: Option<&'static str>,
}

impl Sources {
    /// For the language of [`TinyWorker`](crate::testing::TinyWorker).
    #[must_use]
    pub fn tiny() -> Self {
        Self {
            bind: "x = 1",
            bind_both: "x = 1\ny = x",
            read: "y = x",
            list: "xs = [1]",
            share: "xs = [1]\nys = xs",
            append: "xs.append(2)",
            append_fails: "xs.append(2)\nraise ValueError",
            length: "n = len(ys)",
            delete: "del x",
            print: "print(1)",
            unserializable: Some("it = iter(xs)"),
            clock: Some("t = now()"),
            untracked: Some("untracked()"),
            crash: Some("crash()"),
            endless: Some("while True: pass"),
            write_file: None,
        }
    }

    /// For Python.
    #[must_use]
    pub fn python() -> Self {
        Self {
            unserializable: Some("it = (x for x in xs)"),
            clock: Some("import time\nt = time.time_ns()"),
            untracked: Some("import gc\ngc.get_objects()"),
            crash: Some("import os\nos.abort()"),
            write_file: Some("with open('f', 'w') as file: file.write('1')"),
            ..Self::tiny()
        }
    }
}
