//! How many methods a trait asks its implementers for.

use syn::{Item, TraitItem};

/// The methods of a trait of a file, with or without a body; `None` if it has no such trait.
pub(super) fn of(name: &str, text: &str) -> Option<Vec<String>> {
    let found = syn::parse_file(text).unwrap().items.into_iter().find_map(|item| match item {
        Item::Trait(item) if item.ident == name => Some(item.items),
        _ => None,
    });
    let methods = found?.into_iter().filter_map(|part| match part {
        TraitItem::Fn(part) => Some(part.sig.ident.to_string()),
        _ => None,
    });
    Some(methods.collect())
}
