//! Parses the reducer in `#[state(reduce = ..)]`.

use proc_macro2::Span;
use syn::spanned::Spanned as _;
use syn::{Ident, Path};

use super::model::Reducer;
use crate::attr::{Options, Value};
use crate::diagnostics::Errors;
use crate::text;

/// Built-in reducers, written as words.
const STOCK: &[&str] =
    &["append", "add", "max", "min", "first", "union", "merge", "upsert", "transcript", "replace"];

/// The reducer of a field, and the span that names it.
pub(super) fn choose(field: &Ident, mut options: Options, errors: &mut Errors) -> (Reducer, Span) {
    let update = match options.take("update") {
        Some((key, Value::Type(ty))) => Some((key, ty)),
        _ => None,
    };
    if let Some((key, _)) = options.take("esg") {
        for other in ["reduce", "update", "nest", "provides"] {
            if let Some((other, _)) = options.take(other) {
                errors.push(
                    &other,
                    format!(
                        "`{field}` is a program of code steps, which folds its own changes and is \
                         provided to the steps of `harness::code` (remove `{other}`, or `esg`)"
                    ),
                );
            }
        }
        return (Reducer::Transcript, key.span());
    }
    if let Some((key, _)) = options.take("nest") {
        let other = options.take("reduce").map(|(key, _)| key).or(update.map(|(key, _)| key));
        if let Some(other) = other {
            errors.push(
                &other,
                format!(
                    "`{field}` is nested, and folds by the reducers of its own type (remove \
                     `{other}`, or `nest`)"
                ),
            );
        }
        return (Reducer::Nest, key.span());
    }
    let Some((_, Value::Reducer(path, argument))) = options.take("reduce") else {
        if let Some((key, _)) = update {
            errors.push(key, ONLY_OWN);
        }
        return (Reducer::Replace, field.span());
    };
    let span = path.span();
    let word = path.get_ident().map(Ident::to_string).unwrap_or_default();
    let reducer = match (word.as_str(), argument) {
        ("upsert", Some(key)) => Reducer::Upsert(key),
        ("upsert", None) => {
            errors.push(
                &path,
                format!(
                    "`upsert` needs the key field of an item (write `upsert(id)` if the items of \
                     `{field}` have a field `id`)"
                ),
            );
            Reducer::Replace
        }
        (_, Some(argument)) => {
            errors.push(
                argument,
                format!(
                    "reducer `{}` takes no argument (remove the brackets)",
                    text::type_name(&path)
                ),
            );
            Reducer::Replace
        }
        ("replace", None) => Reducer::Replace,
        ("append", None) => Reducer::Append,
        ("add", None) => Reducer::Add,
        ("max", None) => Reducer::Max,
        ("min", None) => Reducer::Min,
        ("first", None) => Reducer::First,
        ("union", None) => Reducer::Union,
        ("merge", None) => Reducer::Merge,
        ("transcript", None) => Reducer::Transcript,
        (word, None) => {
            misspelt(word, &path, errors);
            return (Reducer::Custom(path, update.map(|(_, ty)| ty)), span);
        }
    };
    if let Some((key, _)) = update {
        errors.push(key, ONLY_OWN);
    }
    (reducer, span)
}

const ONLY_OWN: &str = "`update` needs a custom reducer (add `reduce = my_function`, or \
                        remove `update`)";

fn misspelt(word: &str, path: &Path, errors: &mut Errors) {
    let Some(meant) = STOCK.iter().find(|stock| text::is_slip(word, stock)) else {
        return;
    };
    errors.push(
        path,
        format!(
            "unknown reducer `{word}`, did you mean `{meant}`? (built-in reducers: `{}`; for a \
             function of that name write `self::{word}`)",
            STOCK.join("`, `"),
        ),
    );
}
