//! A state as plain data.

use proc_macro2::Span;
use syn::{Attribute, Ident, Path, Type, Visibility};

/// `#[state(version = 3, migrate = from_v2)] struct Chat { .. }`
pub(super) struct Model<'a> {
    pub(super) vis: &'a Visibility,
    pub(super) name: &'a Ident,
    pub(super) version: u32,
    pub(super) migrate: Vec<Path>,
    pub(super) fields: Vec<Field<'a>>,
}

/// `#[state(reduce = append)] lines: Vec<String>`
pub(super) struct Field<'a> {
    pub(super) name: &'a Ident,
    /// The field's name in serde's output.
    pub(super) stored: String,
    pub(super) ty: &'a Type,
    pub(super) docs: Vec<&'a Attribute>,
    pub(super) reducer: Reducer,
    /// The span of the reducer's name, for errors about the reducer.
    pub(super) span: Span,
    /// The span of `provides`, if the field is provided to steps that serve any
    /// state.
    pub(super) provides: Option<Span>,
}

/// How an update is folded into a field.
pub(super) enum Reducer {
    Replace,
    Append,
    Add,
    Max,
    Min,
    First,
    Union,
    Merge,
    /// With the item's field that is its key.
    Upsert(Ident),
    Transcript,
    /// Of a field that is a state: by its own reducers.
    Nest,
    /// A function, and its argument type if that is not the type of the field.
    Custom(Path, Option<Box<Type>>),
}
