//! `#[derive(StepId)]`.

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::spanned::Spanned as _;
use syn::{DeriveInput, Fields, Ident, Type};

use crate::attr::{Known, Options, Table, Takes};
use crate::diagnostics::Errors;
use crate::{shape, text};

static ON_ENUM: Table = Table { attr: "step", place: "an enum", known: &[], elsewhere: None };

static ON_VARIANT: Table = Table {
    attr: "step",
    place: "a variant",
    known: &[Known { name: "nest", example: "nest", takes: Takes::Nothing }],
    elsewhere: None,
};

/// An enum, and its steps.
struct Model<'a> {
    name: &'a Ident,
    variants: Vec<Step<'a>>,
}

/// A variant: a step, or with a type the steps of another loop.
struct Step<'a> {
    name: &'a Ident,
    nested: Option<&'a Type>,
}

pub(crate) fn derive(input: &DeriveInput) -> TokenStream {
    let mut errors = Errors::default();
    let code = parse(input, &mut errors).map(|model| emit(&model));
    errors.with(code.unwrap_or_default())
}

fn parse<'a>(input: &'a DeriveInput, errors: &mut Errors) -> Option<Model<'a>> {
    let name = &input.ident;
    Options::read(&input.attrs, &ON_ENUM, errors);
    let plain = shape::is_plain(input, "StepId", errors);
    let mut variants = Vec::new();
    for variant in shape::variants(input, "StepId", errors).unwrap_or_default() {
        let nest = Options::read(&variant.attrs, &ON_VARIANT, errors).take("nest");
        let step = &variant.ident;
        let only = match &variant.fields {
            Fields::Unnamed(fields) if fields.unnamed.len() == 1 => fields.unnamed.first(),
            Fields::Unnamed(_) | Fields::Named(_) | Fields::Unit => None,
        };
        match (&variant.fields, nest, only) {
            (Fields::Unit, None, _) => variants.push(Step { name: step, nested: None }),
            (_, Some(_), Some(field)) => {
                variants.push(Step { name: step, nested: Some(&field.ty) });
            }
            (Fields::Unit, Some((key, _)), _) => {
                errors.push(
                    key,
                    format!(
                        "step `{name}::{step}` holds no steps to nest (write `{step}(review::Step)` \
                         with the enum of the steps of the other loop, or remove `nest`)"
                    ),
                );
                variants.push(Step { name: step, nested: None });
            }
            (_, Some(_), None) => errors.push(
                variant,
                format!(
                    "step `{name}::{step}` nests the steps of one other loop (write \
                     `{step}(review::Step)` with their enum)"
                ),
            ),
            (_, None, Some(field)) => errors.push(
                variant,
                format!(
                    "step `{name}::{step}` carries data, and a step is only a name (write \
                     `{step}`, and put the data into the state; if `{}` is the steps of another \
                     loop, write `#[step(nest)]` above it)",
                    text::type_name(&field.ty)
                ),
            ),
            (_, None, None) => errors.push(
                variant,
                format!(
                    "step `{name}::{step}` carries data, and a step is only a name (write \
                     `{step}`, and put the data into the state)"
                ),
            ),
        }
    }
    plain.then_some(Model { name, variants })
}

fn emit(model: &Model<'_>) -> TokenStream {
    let Model { name, variants } = model;
    let text = name.to_string();
    let all = match variants.iter().any(|step| step.nested.is_some()) {
        false => {
            let names = variants.iter().map(|step| step.name);
            quote!(::std::vec![#(Self::#names),*])
        }
        true => {
            let each = variants.iter().map(|Step { name, nested }| match nested {
                None => quote!(all.push(Self::#name);),
                Some(ty) => {
                    let inner = inner(ty, "all");
                    quote!(all.extend(#inner().into_iter().map(Self::#name));)
                }
            });
            quote! {
                let mut all = ::std::vec::Vec::new();
                #(#each)*
                all
            }
        }
    };
    let names = variants.iter().map(|Step { name, nested }| {
        let text = name.to_string();
        match nested {
            None => quote!(Self::#name => ::std::borrow::Cow::Borrowed(#text),),
            Some(ty) => {
                let inner = inner(ty, "name");
                quote!(Self::#name(step) => {
                    ::std::borrow::Cow::Owned(::std::format!("{}/{}", #text, #inner(step)))
                })
            }
        }
    });
    let places = variants.iter().enumerate().map(|(at, Step { name, nested })| {
        let before = &variants[..at];
        let plain = before.iter().filter(|step| step.nested.is_none()).count();
        let groups = before.iter().filter_map(|step| step.nested).map(|ty| inner(ty, "all"));
        let start = quote!(#plain #(+ #groups().len())*);
        match nested {
            None => quote!(Self::#name => #start,),
            Some(ty) => {
                let inner = inner(ty, "index");
                quote!(Self::#name(step) => #start + #inner(step),)
            }
        }
    });
    quote! {
        #[automatically_derived]
        impl ::harness::step::StepId for #name {
            const NAME: &'static str = #text;

            fn all() -> ::std::vec::Vec<Self> {
                #all
            }

            #[allow(unreachable_patterns)]
            fn name(&self) -> ::std::borrow::Cow<'static, str> {
                match self {
                    #(#names)*
                    _ => ::std::borrow::Cow::Borrowed(""),
                }
            }

            #[allow(unreachable_patterns)]
            fn index(&self) -> usize {
                match self {
                    #(#places)*
                    _ => 0,
                }
            }
        }
    }
}

/// A function of the nested steps, such that the compiler's messages point at their type.
fn inner(ty: &Type, function: &str) -> TokenStream {
    let function = Ident::new(function, Span::call_site());
    let step_id = quote_spanned!(ty.span()=> ::harness::step::StepId);
    quote!(<#ty as #step_id>::#function)
}
