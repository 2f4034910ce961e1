//! `#[derive(StepId)]`.

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::spanned::Spanned as _;
use syn::{DeriveInput, Fields, Ident, LitStr, Type};

use crate::attr::{Known, Options, Table, Takes, Value};
use crate::diagnostics::Errors;
use crate::{shape, text};

static ON_ENUM: Table = Table {
    attr: "step",
    place: "an enum",
    known: &[Known { name: "ends", example: "ends = Verdict", takes: Takes::Type }],
    elsewhere: None,
};

static ON_VARIANT: Table = Table {
    attr: "step",
    place: "a variant",
    known: &[
        Known { name: "nest", example: "nest", takes: Takes::Nothing },
        Known { name: "alias", example: "alias = \"Old\"", takes: Takes::Strs },
    ],
    elsewhere: None,
};

/// An enum and its steps.
struct Model<'a> {
    name: &'a Ident,
    /// What the loop of these steps ends with.
    ends: Option<Box<Type>>,
    variants: Vec<Step<'a>>,
}

/// A variant: a step, or the steps of a nested loop if it has a type.
struct Step<'a> {
    name: &'a Ident,
    nested: Option<&'a Type>,
    /// The step's former names.
    aliases: Vec<LitStr>,
}

pub(crate) fn derive(input: &DeriveInput) -> TokenStream {
    let mut errors = Errors::default();
    let code = parse(input, &mut errors).map(|model| emit(&model));
    errors.with(code.unwrap_or_default())
}

fn parse<'a>(input: &'a DeriveInput, errors: &mut Errors) -> Option<Model<'a>> {
    let name = &input.ident;
    let ends = match Options::read(&input.attrs, &ON_ENUM, errors).take("ends") {
        Some((_, Value::Type(ty))) => Some(ty),
        _ => None,
    };
    let plain = shape::is_plain(input, "StepId", errors);
    let mut variants = Vec::new();
    for variant in shape::variants(input, "StepId", errors).unwrap_or_default() {
        let mut options = Options::read(&variant.attrs, &ON_VARIANT, errors);
        let nest = options.take("nest");
        let mut aliases = Vec::new();
        while let Some((_, value)) = options.take("alias") {
            if let Value::Str(alias) = value {
                aliases.push(alias);
            }
        }
        let step = &variant.ident;
        let only = match &variant.fields {
            Fields::Unnamed(fields) if fields.unnamed.len() == 1 => fields.unnamed.first(),
            Fields::Unnamed(_) | Fields::Named(_) | Fields::Unit => None,
        };
        match (&variant.fields, nest, only) {
            (Fields::Unit, None, _) => {
                variants.push(Step { name: step, nested: None, aliases });
            }
            (_, Some(_), Some(field)) => {
                variants.push(Step { name: step, nested: Some(&field.ty), aliases });
            }
            (Fields::Unit, Some((key, _)), _) => {
                errors.push(
                    key,
                    format!(
                        "step `{name}::{step}` has no loop to nest (write `{step}(review::Step)` \
                         with the step enum of the nested loop, or remove `nest`)"
                    ),
                );
                variants.push(Step { name: step, nested: None, aliases });
            }
            (_, Some(_), None) => errors.push(
                variant,
                format!(
                    "step `{name}::{step}` must nest exactly one loop (write \
                     `{step}(review::Step)` with the step enum of that loop)"
                ),
            ),
            (_, None, Some(field)) => errors.push(
                variant,
                format!(
                    "step `{name}::{step}` carries data, but a step is only a name (write \
                     `{step}`, and put the data in the state; if `{}` is the step enum of a nested \
                     loop, write `#[step(nest)]` above it)",
                    text::type_name(&field.ty)
                ),
            ),
            (_, None, None) => errors.push(
                variant,
                format!(
                    "step `{name}::{step}` carries data, but a step is only a name (write \
                     `{step}`, and put the data in the state)"
                ),
            ),
        }
    }
    check_aliases(name, &variants, errors);
    plain.then_some(Model { name, ends, variants })
}

/// Checks that every stored name resolves to one step.
fn check_aliases(name: &Ident, variants: &[Step<'_>], errors: &mut Errors) {
    let mut taken: Vec<(String, &Ident)> =
        variants.iter().map(|step| (step.name.to_string(), step.name)).collect();
    for step in variants {
        let this = step.name;
        for alias in &step.aliases {
            let text = alias.value();
            if text.trim().is_empty() {
                errors.push(
                    alias,
                    format!(
                        "an alias of step `{name}::{this}` is empty (write the former name of the \
                         step)"
                    ),
                );
                continue;
            }
            match taken.iter().find(|(known, _)| *known == text) {
                Some((_, other)) if *other == this => errors.push(
                    alias,
                    format!(
                        "step `{name}::{this}` already has the name `{text}` (remove this alias)"
                    ),
                ),
                Some((_, other)) => errors.push(
                    alias,
                    format!(
                        "`{text}` already names step `{name}::{other}`, so it cannot be an \
                         alias of `{name}::{this}` (remove one of them)"
                    ),
                ),
                None => taken.push((text, this)),
            }
        }
    }
}

fn emit(model: &Model<'_>) -> TokenStream {
    let Model { name, ends, variants } = model;
    let text = name.to_string();
    let ends = match ends {
        Some(ty) => quote!(#ty),
        None => quote!(()),
    };
    let all = match variants.iter().any(|step| step.nested.is_some()) {
        false => {
            let names = variants.iter().map(|step| step.name);
            quote!(::std::vec![#(Self::#names),*])
        }
        true => {
            let each = variants.iter().map(|Step { name, nested, .. }| match nested {
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
    let names = variants.iter().map(|Step { name, nested, .. }| {
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
    let places = variants.iter().enumerate().map(|(at, Step { name, nested, .. })| {
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
    let aliases = aliases(variants);
    quote! {
        #[automatically_derived]
        #[diagnostic::do_not_recommend]
        impl ::harness::step::StepId for #name {
            type End = #ends;

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

            #aliases
        }
    }
}

/// The method that lists the former names of each step, if any step can have
/// one.
fn aliases(variants: &[Step<'_>]) -> TokenStream {
    let had = |step: &Step<'_>| step.nested.is_some() || !step.aliases.is_empty();
    let arms = variants.iter().filter(|step| had(step)).map(|step| {
        let Step { name, nested, aliases } = step;
        let text = name.to_string();
        let Some(ty) = nested else {
            return quote!(Self::#name => ::std::vec![#(::std::borrow::Cow::Borrowed(#aliases)),*],);
        };
        let (inner_name, inner_aliases) = (inner(ty, "name"), inner(ty, "aliases"));
        // Every name of the nested loop with every name of the step, except the
        // current pair.
        quote!(Self::#name(step) => {
            let mut below = ::std::vec![#inner_name(step)];
            below.extend(#inner_aliases(step));
            let groups: &[&str] = &[#text #(, #aliases)*];
            let all = groups.iter().flat_map(|group| {
                below.iter().map(move |step| {
                    ::std::borrow::Cow::Owned(::std::format!("{group}/{step}"))
                })
            });
            all.skip(1).collect()
        })
    });
    let arms: Vec<_> = arms.collect();
    if arms.is_empty() {
        return TokenStream::new();
    }
    quote! {
        #[allow(unreachable_patterns)]
        fn aliases(&self) -> ::std::vec::Vec<::std::borrow::Cow<'static, str>> {
            match self {
                #(#arms)*
                _ => ::std::vec::Vec::new(),
            }
        }
    }
}

/// Calls a function of the nested steps, with the span of their type.
fn inner(ty: &Type, function: &str) -> TokenStream {
    let function = Ident::new(function, Span::call_site());
    let step_id = quote_spanned!(ty.span()=> ::harness::step::StepId);
    quote!(<#ty as #step_id>::#function)
}
