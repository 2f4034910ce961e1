//! A context as plain data.

use syn::{Attribute, Ident, Type, Visibility};

/// `struct Ctx { .. }`
pub(super) struct Model<'a> {
    pub(super) vis: &'a Visibility,
    pub(super) name: &'a Ident,
    pub(super) slots: Vec<Slot<'a>>,
}

/// `#[slot(required)] prompts: Prompts`
pub(super) struct Slot<'a> {
    pub(super) name: &'a Ident,
    /// The name of its setter. It differs from `name` only if `name` is
    /// reserved.
    pub(super) setter: Ident,
    pub(super) ty: &'a Type,
    pub(super) docs: Vec<&'a Attribute>,
    pub(super) when: When,
}

/// When a slot is filled.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum When {
    Fixed,
    Required,
    Runtime,
}

impl When {
    pub(super) const ALL: [Self; 3] = [Self::Fixed, Self::Required, Self::Runtime];

    /// The option, and the function that starts the builder: `Ctx::required()`.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Fixed => "fixed",
            Self::Required => "required",
            Self::Runtime => "runtime",
        }
    }

    /// The variant, and the suffix of the generated struct.
    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Fixed => "Fixed",
            Self::Required => "Required",
            Self::Runtime => "Runtime",
        }
    }

    /// The time in words, for messages and docs.
    pub(super) fn moment(self) -> &'static str {
        match self {
            Self::Fixed => "when the harness is built",
            Self::Required => "when the agent is created",
            Self::Runtime => "when a run starts",
        }
    }
}
