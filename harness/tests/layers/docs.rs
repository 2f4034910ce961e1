//! What is public and says nothing about itself.

use syn::{Attribute, Fields, ImplItem, Item, TraitItem, Visibility};

use super::imports::for_tests;

/// The undocumented public items of a file. What macros generate is not seen, nor is what a trait's
/// implementation says, which is documented by the trait.
pub(super) fn faults(text: &str) -> Vec<String> {
    let file = syn::parse_file(text).unwrap();
    let mut faults = Vec::new();
    items(&file.items, &mut faults);
    faults
}

/// Whether it is documented, or says that it need not be.
fn said(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| attribute.path().is_ident("doc"))
}

fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

fn items(list: &[Item], faults: &mut Vec<String>) {
    for item in list {
        match item {
            Item::Fn(item) => {
                named(&item.vis, &item.attrs, "fn", &item.sig.ident, faults);
            }
            Item::Const(item) => {
                named(&item.vis, &item.attrs, "const", &item.ident, faults);
            }
            Item::Static(item) => {
                named(&item.vis, &item.attrs, "static", &item.ident, faults);
            }
            Item::Type(item) => {
                named(&item.vis, &item.attrs, "type", &item.ident, faults);
            }
            Item::Struct(item) if is_public(&item.vis) => {
                named(&item.vis, &item.attrs, "struct", &item.ident, faults);
                fields(&item.fields, &item.ident, faults);
            }
            Item::Enum(item) if is_public(&item.vis) => {
                named(&item.vis, &item.attrs, "enum", &item.ident, faults);
                for variant in item.variants.iter().filter(|variant| !said(&variant.attrs)) {
                    let fault = format!("variant `{}` of `{}`", variant.ident, item.ident);
                    faults.push(format!("{fault} has no documentation"));
                }
                for variant in &item.variants {
                    every_field(&variant.fields, &variant.ident, faults);
                }
            }
            Item::Trait(item) if is_public(&item.vis) => {
                named(&item.vis, &item.attrs, "trait", &item.ident, faults);
                for part in &item.items {
                    let (kind, name, attributes) = match part {
                        TraitItem::Fn(part) => ("fn", &part.sig.ident, &part.attrs),
                        TraitItem::Type(part) => ("type", &part.ident, &part.attrs),
                        TraitItem::Const(part) => ("const", &part.ident, &part.attrs),
                        _ => continue,
                    };
                    if !said(attributes) {
                        let fault = format!("{kind} `{name}` of `{}`", item.ident);
                        faults.push(format!("{fault} has no documentation"));
                    }
                }
            }
            Item::Impl(item) if item.trait_.is_none() && !for_tests(&item.attrs) => {
                for part in &item.items {
                    match part {
                        ImplItem::Fn(part) => {
                            named(&part.vis, &part.attrs, "fn", &part.sig.ident, faults);
                        }
                        ImplItem::Const(part) => {
                            named(&part.vis, &part.attrs, "const", &part.ident, faults);
                        }
                        _ => {}
                    }
                }
            }
            // What a file says about itself, rustc checks.
            Item::Mod(item) if !for_tests(&item.attrs) => {
                if let Some((_, inside)) = &item.content {
                    items(inside, faults);
                }
            }
            _ => {}
        }
    }
}

fn named(
    visibility: &Visibility,
    attributes: &[Attribute],
    kind: &str,
    name: &syn::Ident,
    faults: &mut Vec<String>,
) {
    if is_public(visibility) && !said(attributes) && !for_tests(attributes) {
        faults.push(format!("{kind} `{name}` has no documentation"));
    }
}

fn fields(list: &Fields, owner: &syn::Ident, faults: &mut Vec<String>) {
    for field in list.iter().filter(|field| is_public(&field.vis) && !said(&field.attrs)) {
        if let Some(name) = &field.ident {
            faults.push(format!("field `{name}` of `{owner}` has no documentation"));
        }
    }
}

/// The fields of a variant are as public as the variant.
fn every_field(list: &Fields, owner: &syn::Ident, faults: &mut Vec<String>) {
    for field in list.iter().filter(|field| !said(&field.attrs)) {
        if let Some(name) = &field.ident {
            faults.push(format!("field `{name}` of `{owner}` has no documentation"));
        }
    }
}
