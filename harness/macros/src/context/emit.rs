//! Turns a [`Model`] into code.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::ext::IdentExt as _;
use syn::{Ident, LitStr};

use super::model::{Model, Slot, When};
use crate::text;

pub(super) fn emit(model: &Model<'_>) -> TokenStream {
    let name = model.name;
    let builders = When::ALL.map(|when| builder(model, when));
    let [fixed, required, runtime] = When::ALL.map(|when| match model.has(when) {
        true => {
            let slots = model.slots_struct(when);
            quote!(#slots)
        }
        false => quote!(()),
    });
    let [given_fixed, given_required, given_runtime] = When::ALL.map(|when| {
        let word = format_ident!("{}", when.word());
        match model.has(when) {
            true => quote!(#word),
            false => quote!(()),
        }
    });
    let moves = model.slots.iter().map(|slot| {
        let (name, setter) = (slot.name, &slot.setter);
        let when = format_ident!("{}", slot.when.word());
        quote!(#name: #when.#setter)
    });
    let listed = model.slots.iter().map(|slot| {
        let text = slot.name.unraw().to_string();
        let (when, type_name) = (format_ident!("{}", slot.when.title()), text::type_name(slot.ty));
        quote! {
            ::harness::context::Slot {
                name: #text,
                when: ::harness::context::When::#when,
                type_name: #type_name,
            }
        }
    });
    quote! {
        #(#builders)*

        #[automatically_derived]
        impl ::harness::context::Context for #name {
            type Fixed = #fixed;
            type Required = #required;
            type Runtime = #runtime;

            fn assemble(
                #given_fixed: #fixed,
                #given_required: #required,
                #given_runtime: #runtime,
            ) -> Self {
                Self { #(#moves),* }
            }

            fn slots() -> &'static [::harness::context::Slot] {
                &[#(#listed),*]
            }
        }
    }
}

/// The struct of the slots filled at one time, with its builder: `struct
/// CtxRequired { prompts: Prompts }`.
fn builder(model: &Model<'_>, when: When) -> TokenStream {
    if !model.has(when) {
        return TokenStream::new();
    }
    let Model { vis, name, .. } = model;
    let (slots, word) = (model.slots_struct(when), format_ident!("{}", when.word()));
    let builder = format_ident!("{slots}Builder");
    let clone = (when != When::Runtime).then(|| quote!(::core::clone::Clone,));
    let fields = model.at(when).map(|slot| {
        let (setter, docs) = (&slot.setter, &slot.docs);
        let ty = text::without_self(slot.ty, model.name);
        quote!(#(#docs)* #setter: #ty)
    });
    let about = format!("The slots of [`{name}`] filled {}.", when.moment());
    let starts = format!("Fills the slots of [`{name}`] that are filled {}.", when.moment());
    let mistimed = model
        .slots
        .iter()
        .filter(|slot| slot.when != when)
        .map(|slot| mistimed(model, when, &builder, slot));
    quote! {
        #[doc = #about]
        #[derive(#clone ::harness::context::Slots)]
        #[builder(crate_module_path = ::harness::__private::typed_builder)]
        #vis struct #slots { #(#fields),* }

        #[automatically_derived]
        impl #name {
            #[doc = #starts]
            #[allow(dead_code)]
            #vis fn #word() -> #builder {
                #slots::builder()
            }
        }

        #(#mistimed)*
    }
}

/// A setter that cannot be called. Its error names the builder that has the
/// slot.
fn mistimed(model: &Model<'_>, when: When, builder: &Ident, slot: &Slot<'_>) -> TokenStream {
    let (context, vis, setter) = (model.name, model.vis, &slot.setter);
    let name = slot.name;
    let (here, there) = (when.word(), slot.when.word());
    let text = name.unraw().to_string();
    let lit = |text: String| LitStr::new(&text, name.span());
    let message = lit(format!("`{context}::{here}()` does not take slot `{text}`"));
    let label = lit(format!("`{text}` is filled {}", slot.when.moment()));
    let note = lit(format!("set it in `{context}::{there}()`"));
    let proof = format_ident!("{}Slot", slot.when.title());
    quote! {
        const _: () = {
            #[diagnostic::on_unimplemented(message = #message, label = #label, note = #note)]
            #[doc(hidden)]
            #[allow(unreachable_pub, dead_code)]
            pub trait #proof {}

            #[automatically_derived]
            impl<TypedBuilderFields> #builder<TypedBuilderFields> {
                #[doc(hidden)]
                #[allow(dead_code)]
                #vis fn #setter(self, _: impl #proof) -> Self {
                    self
                }
            }
        };
    }
}

impl<'a> Model<'a> {
    fn at(&self, when: When) -> impl Iterator<Item = &Slot<'a>> {
        self.slots.iter().filter(move |slot| slot.when == when)
    }

    fn has(&self, when: When) -> bool {
        self.at(when).next().is_some()
    }

    fn slots_struct(&self, when: When) -> Ident {
        format_ident!("{}{}", self.name, when.title())
    }
}
