//! Methods of traits and types, and lists of names.

use syn::{Expr, ImplItem, Item, Lit, TraitItem, Type, Visibility};

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

/// The public methods of a type of a file: those that its values have beside its fields.
pub(super) fn of_type(name: &str, text: &str) -> Vec<String> {
    let items = syn::parse_file(text).unwrap().items;
    let blocks = items.into_iter().filter_map(|item| match item {
        Item::Impl(block) if block.trait_.is_none() => match &*block.self_ty {
            Type::Path(path) if path.path.segments.last()?.ident == name => Some(block.items),
            _ => None,
        },
        _ => None,
    });
    let methods = blocks.flatten().filter_map(|part| match part {
        ImplItem::Fn(part) if matches!(part.vis, Visibility::Public(_)) => {
            Some(part.sig.ident.to_string())
        }
        _ => None,
    });
    methods.collect()
}

/// The texts in a constant list of a file; `None` if it has no such list.
pub(super) fn texts(name: &str, text: &str) -> Option<Vec<String>> {
    let list = syn::parse_file(text).unwrap().items.into_iter().find_map(|item| match item {
        Item::Const(item) if item.ident == name => match *item.expr {
            Expr::Reference(list) => match *list.expr {
                Expr::Array(list) => Some(list.elems),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    })?;
    let texts = list.into_iter().filter_map(|text| match text {
        Expr::Lit(text) => match text.lit {
            Lit::Str(text) => Some(text.value()),
            _ => None,
        },
        _ => None,
    });
    Some(texts.collect())
}
