//! State inside packages: what of it is compared, and named channels of it.

/// What of the state inside packages is compared.
///
/// ```no_run
/// use harness_esg::{CPython, Strictness, Trust};
///
/// let python = CPython::find().strictness(Strictness::Everything).trust(Trust::Mine).start()?;
/// # Ok::<(), harness_esg::StartError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Strictness {
    /// Packages are part of the environment. Their state counts as caches and constants, except for
    /// [ambient channels](Ambient), and what happens while one is imported is not the step's. A
    /// program that changes other state inside a package, in place and not by setting an attribute
    /// of its module or class, is restored without that change;
    /// [`CodeGraph::verify`](crate::CodeGraph::verify) finds such a program.
    #[default]
    Packages,
    /// The state of each module that a step reaches is compared, and what an import does is the
    /// step's. Any change of it, by the program or by the package itself, is untracked. Slow, and
    /// most packages change their own state.
    Everything,
}

impl Strictness {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Packages => "packages",
            Self::Everything => "everything",
        }
    }
}

/// An ambient channel: named state inside a package that programs set on purpose. It is versioned,
/// compared and restored like a name.
///
/// `random`, the global generator, print and error options of numpy, options of pandas, matplotlib's
/// `rcParams` and pyplot's open figures, the settings of scikit-learn, `warnings`, `logging`, the decimal context, the locale, the
/// module path, the environment and the working directory are channels already.
///
/// ```no_run
/// use harness_esg::{Ambient, CPython, Trust};
///
/// let units = Ambient::new(
///     "units",
///     "my_units",
///     "import my_units
/// def read():
///     return my_units.system
/// def restore(system):
///     my_units.use(system)
/// ",
/// );
/// let python = CPython::find().ambient(units).trust(Trust::Mine).start()?;
/// # Ok::<(), harness_esg::StartError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ambient {
    name: String,
    module: String,
    source: String,
}

impl Ambient {
    /// A channel of the package module `module`, active once it is loaded. `source` is Python that
    /// defines `read()`, which returns the state as plain data, and `restore(state)`, which sets it.
    /// Every step that may use the package depends on it.
    pub fn new(
        name: impl Into<String>,
        module: impl Into<String>,
        source: impl Into<String>,
    ) -> Self {
        Self { name: name.into(), module: module.into(), source: source.into() }
    }

    pub(super) fn parts(&self) -> [&str; 3] {
        [&self.name, &self.module, &self.source]
    }
}
