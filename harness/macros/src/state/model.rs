//! A state as data.

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
    /// As serde calls it.
    pub(super) stored: String,
    pub(super) ty: &'a Type,
    pub(super) docs: Vec<&'a Attribute>,
    pub(super) reducer: Reducer,
    /// Where the reducer is named, for errors about it.
    pub(super) span: Span,
    /// Where it says that the field is provided to steps that serve any state.
    pub(super) provides: Option<Span>,
}

/// How a field folds an update in.
pub(super) enum Reducer {
    Replace,
    Append,
    Add,
    Max,
    Min,
    First,
    Union,
    Merge,
    /// With the field of an item that is its key.
    Upsert(Ident),
    Transcript,
    /// A function, and what it takes if that is not the type of the field.
    Custom(Path, Option<Box<Type>>),
}
