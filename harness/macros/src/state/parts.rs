//! The code that differs between reducers.
//!
//! Code that fails to compile for a wrong field type carries the span of the
//! reducer.

use proc_macro2::TokenStream;
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::Type;
use syn::ext::IdentExt as _;

use super::model::{Field, Model, Reducer};
use crate::text;

/// The code for one field.
pub(super) struct Parts {
    /// The type of the update's field, inside an `Option`.
    pub(super) slot: TokenStream,
    /// The type of the setter's parameter.
    pub(super) takes: TokenStream,
    /// What the setter takes, as one value.
    pub(super) change: TokenStream,
    /// The body of the setter.
    pub(super) fill: TokenStream,
    /// How `apply` folds a change into the field.
    pub(super) fold: TokenStream,
    /// The first line of the setter's documentation.
    pub(super) about: String,
}

impl Parts {
    pub(super) fn of(model: &Model<'_>, field: &Field<'_>) -> Self {
        let name = field.name;
        let own = text::without_self(field.ty, model.name);
        let ty = text::point_at(&own, field.span);
        let stored = &field.stored;
        let ops = quote_spanned!(field.span=> &mut ops.field(#stored));
        let several = quote! {
            self.#name
                .get_or_insert_with(::core::default::Default::default)
                .extend(::harness::state::Items::into_items(#name));
        };
        let text = name.unraw().to_string();
        let items = |kind: &str, what: &str, item: TokenStream, fold: TokenStream| {
            let [item] = held(model, field, [item]);
            Self {
                slot: quote!(::std::vec::Vec<#item>),
                takes: quote!(impl ::harness::state::Items<#item>),
                change: quote!(::std::vec::Vec<#item>),
                fill: several.clone(),
                fold,
                about: format!("{what} `{text}` (reducer `{kind}`)."),
            }
        };
        // Without these, the span inside `quote!` would be the span of the
        // derive.
        let list = quote_spanned!(field.span=> <#ty as ::harness::state::Append>);
        let keyed = quote_spanned!(field.span=> <#ty as ::harness::state::Upsert>);
        let set = quote_spanned!(field.span=> <#ty as ::harness::state::Union>);
        let map = quote_spanned!(field.span=> <#ty as ::harness::state::Merge>);
        let entries = quote_spanned!(field.span=> <#ty as ::harness::state::Fold>);
        let sum = quote_spanned!(field.span=> <#ty as ::harness::state::Add>);
        match &field.reducer {
            Reducer::Append => items(
                "append",
                "Appends to",
                quote!(#list::Item),
                quote_spanned!(field.span=> #list::append_items(&mut self.#name, change, #ops);),
            ),
            Reducer::Union => items(
                "union",
                "Inserts into",
                quote!(#set::Item),
                quote_spanned!(field.span=> #set::insert_members(&mut self.#name, change, #ops);),
            ),
            Reducer::Upsert(key) => {
                let text = key.unraw().to_string();
                items(
                    "upsert",
                    "Replaces by key, or pushes, in",
                    quote!(#keyed::Item),
                    quote_spanned! {field.span=>
                        #keyed::upsert_items(
                            &mut self.#name, change, #text, |item| &item.#key, #ops,
                        );
                    },
                )
            }
            Reducer::Transcript => items(
                "transcript",
                "Folds entries into",
                quote!(#entries::Item),
                quote_spanned! {field.span=>
                    for entry in change {
                        #entries::fold(&mut self.#name, entry, #ops);
                    }
                },
            ),
            Reducer::Merge => {
                let [key, value] = held(model, field, [quote!(#map::Key), quote!(#map::Value)]);
                Self {
                    slot: quote!(::harness::state::Entries<#key, #value>),
                    takes: quote!(impl ::harness::state::Items<(#key, #value)>),
                    change: quote!(::std::vec::Vec<(#key, #value)>),
                    fill: several,
                    fold: quote_spanned!(field.span=> #map::merge_entries(&mut self.#name, change, #ops);),
                    about: format!("Inserts entries into `{text}` (reducer `merge`)."),
                }
            }
            Reducer::Add => Self {
                slot: own.clone(),
                takes: own.clone(),
                change: own,
                fill: quote_spanned!(field.span=> #sum::add_to(&mut self.#name, #name);),
                fold: quote_spanned! {field.span=>
                    #sum::add(&mut self.#name, change);
                    ops.field(#stored).set(&self.#name);
                },
                about: format!("Adds to `{text}` (reducer `add`)."),
            },
            Reducer::Max | Reducer::Min | Reducer::First => extreme(model, field, &ty),
            Reducer::Replace => {
                let (takes, value) = taking(model, field.ty, &own, name);
                Self {
                    slot: own.clone(),
                    takes,
                    change: own,
                    fill: quote!(self.#name = ::core::option::Option::Some(#value);),
                    fold: quote! {
                        self.#name = change;
                        ops.field(#stored).set(&self.#name);
                    },
                    about: format!("Replaces `{text}`."),
                }
            }
            Reducer::Nest => {
                let update = quote_spanned!(field.span=> <#ty as ::harness::state::State>::Update);
                Self {
                    slot: quote!(::std::vec::Vec<#update>),
                    takes: update.clone(),
                    change: update,
                    fill: quote! {
                        self.#name
                            .get_or_insert_with(::core::default::Default::default)
                            .push(#name);
                    },
                    fold: quote_spanned! {field.span=>
                        ::harness::state::Nest::nest(&mut self.#name, change, #ops);
                    },
                    about: format!("Folds an update into `{text}`, by its own reducers."),
                }
            }
            Reducer::Custom(path, update) => {
                let change = update.as_ref().map(|ty| text::without_self(ty, model.name));
                let written = update.as_deref().unwrap_or(field.ty);
                let slot = change.unwrap_or(own);
                let (takes, value) = taking(model, written, &slot, name);
                Self {
                    slot: quote!(::std::vec::Vec<#slot>),
                    takes,
                    change: slot,
                    fill: quote! {
                        self.#name
                            .get_or_insert_with(::core::default::Default::default)
                            .push(#value);
                    },
                    fold: quote_spanned! {field.span=>
                        for change in change {
                            let folded = #path(&mut self.#name, change);
                            ::harness::state::Folded::record(folded, &self.#name, #ops);
                        }
                    },
                    about: format!("Folds into `{text}` by `{}`.", text::type_name(path)),
                }
            }
        }
    }
}

/// The reducers `max`, `min` and `first`, which keep one value in an `Option`.
fn extreme(model: &Model<'_>, field: &Field<'_>, ty: &TokenStream) -> Parts {
    let (name, stored, word) = (field.name, &field.stored, field.reducer.name());
    let (kind, method, what) = match field.reducer {
        Reducer::Max => ("Max", "max", "if it is greater"),
        Reducer::Min => ("Min", "min", "if it is less"),
        _ => ("First", "first", "if the field is empty"),
    };
    let (kind, method) = (format_ident!("{kind}"), format_ident!("{method}"));
    let here = text::point_at(name, field.span);
    let option = quote_spanned!(field.span=> <#ty as ::harness::state::#kind>);
    let [held] = held(model, field, [quote!(#option::Value)]);
    let (takes, value) = match inside(field.ty) {
        Some(inner) => taking(model, inner, &held, &here),
        None => (held.clone(), here.clone()),
    };
    Parts {
        slot: held.clone(),
        takes,
        change: held,
        fill: quote_spanned!(field.span=> #option::keep(&mut self.#here, #value);),
        fold: quote_spanned!(field.span=> #option::#method(&mut self.#here, change, &mut ops.field(#stored));),
        about: format!("Writes `{}` {what} (reducer `{word}`).", name.unraw()),
    }
}

/// The item type of a field, or its key and value types, for the field of the
/// update.
///
/// If the field's type is known, its parameters are used as written. A wrong
/// field type is then one error, at the reducer, and not one error for each use
/// of the item. For any other type the item is the associated type in `named`.
fn held<const N: usize>(
    model: &Model<'_>,
    field: &Field<'_>,
    named: [TokenStream; N],
) -> [TokenStream; N] {
    let whole = text::without_self(field.ty, model.name);
    let Type::Path(path) = field.ty else {
        return named.map(|_| whole.clone());
    };
    if PLAIN.iter().any(|plain| path.path.is_ident(plain)) {
        return named.map(|_| whole.clone());
    }
    match path.path.segments.last() {
        Some(last) if HOLDING.iter().any(|holding| last.ident == holding) => {
            let mut arguments = text::arguments(last).into_iter();
            named.map(|_| match arguments.next() {
                Some(ty) => text::without_self(ty, model.name),
                None => whole.clone(),
            })
        }
        _ => named,
    }
}

/// Standard types that hold the types of their parameters.
const HOLDING: &[&str] =
    &["Vec", "VecDeque", "BTreeSet", "HashSet", "BTreeMap", "HashMap", "Option"];

/// Standard types without items.
const PLAIN: &[&str] = &[
    "bool", "char", "f32", "f64", "i128", "i16", "i32", "i64", "i8", "isize", "String", "u128",
    "u16", "u32", "u64", "u8", "usize",
];

/// Whether a type is a standard one, and so cannot be a state.
pub(super) fn is_standard(ty: &Type) -> bool {
    let Type::Path(path) = ty else { return false };
    let last = path.path.segments.last();
    last.is_some_and(|last| PLAIN.iter().chain(HOLDING).any(|known| last.ident == known))
}

/// The parameter of a setter, and the value it stores. Strings are converted with `Into`. An option
/// takes a value, `None`, and a value without `Some`.
fn taking(
    model: &Model<'_>,
    written: &Type,
    ty: &TokenStream,
    name: &impl ToTokens,
) -> (TokenStream, TokenStream) {
    if is_string(written) {
        return (
            quote!(impl ::core::convert::Into<#ty>),
            quote!(::core::convert::Into::into(#name)),
        );
    }
    // What an option of an option takes would be ambiguous.
    let Some(held) = inside(written).filter(|held| inside(held).is_none()) else {
        return (ty.clone(), quote!(#name));
    };
    let held = text::without_self(held, model.name);
    (
        quote!(impl ::harness::state::IntoOption<#held>),
        quote!(::harness::state::IntoOption::<#held>::into_option(#name)),
    )
}

fn is_string(ty: &Type) -> bool {
    matches!(ty, Type::Path(path) if path.qself.is_none()
        && path.path.segments.last().is_some_and(|last| last.ident == "String"))
}

/// The `T` of an `Option<T>`.
fn inside(ty: &Type) -> Option<&Type> {
    let Type::Path(path) = ty else { return None };
    let last = path.path.segments.last()?;
    let first = text::arguments(last).first().copied();
    first.filter(|_| last.ident == "Option")
}
