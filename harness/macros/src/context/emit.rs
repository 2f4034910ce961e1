//! Turns a [`Model`] into code.

use std::cmp::Ordering;

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
///
/// `typed-builder` keeps what is set, under hidden names. The setters and
/// `build` are ours, so that a mistake names the slot and the remedy.
fn builder(model: &Model<'_>, when: When) -> TokenStream {
    if !model.has(when) {
        return TokenStream::new();
    }
    let Model { vis, name, .. } = model;
    let (slots, word) = (model.slots_struct(when), format_ident!("{}", when.word()));
    let builder = format_ident!("{slots}Builder");
    let clone = (when != When::Runtime).then(|| quote!(::core::clone::Clone,));
    let fields = model.at(when).map(|slot| {
        let (setter, docs, ty) = (&slot.setter, &slot.docs, slot.plain_type(model));
        quote!(#(#docs)* #setter: #ty)
    });
    let about = format!("The slots of [`{name}`] filled {}.", when.moment());
    let starts = format!("Fills the slots of [`{name}`] that are filled {}.", when.moment());
    let filled = Filled { model, when, builder: &builder, slots: model.at(when).collect() };
    let setters = (0..filled.slots.len()).map(|at| filled.setter(at));
    let build = filled.build(&slots);
    let mistimed =
        model.slots.iter().filter(|slot| slot.when != when).map(|slot| filled.mistimed(slot));
    quote! {
        #[doc = #about]
        #[derive(#clone ::harness::context::Slots)]
        #[builder(
            crate_module_path = ::harness::__private::typed_builder,
            build_method(vis = "", name = __build),
            field_defaults(setter(prefix = "__set_")),
        )]
        #vis struct #slots { #(#fields),* }

        #[automatically_derived]
        impl #name {
            #[doc = #starts]
            #[allow(dead_code)]
            #vis fn #word() -> #builder {
                #slots::builder()
            }
        }

        #(#setters)*
        #build
        #(#mistimed)*
    }
}

/// The builder of the slots that are filled at one time. Its parameter is a
/// tuple: `()` for a slot that is not set, `(T,)` for one that is.
struct Filled<'m> {
    model: &'m Model<'m>,
    when: When,
    builder: &'m Ident,
    slots: Vec<&'m Slot<'m>>,
}

impl Filled<'_> {
    /// The setter of a slot, and the same method on a builder that has the slot.
    fn setter(&self, at: usize) -> TokenStream {
        let Self { model, builder, .. } = self;
        let slot = self.slots[at];
        let (vis, setter, docs) = (model.vis, &slot.setter, &slot.docs);
        let hidden = format_ident!("__set_{}", setter.unraw());
        let ty = slot.plain_type(model);
        let others: Vec<Ident> = self
            .slots
            .iter()
            .filter(|other| other.name != slot.name)
            .map(|it| it.param())
            .collect();
        let unset = self.fields(|index, slot| (index != at).then(|| slot.free()));
        let set = self.fields(|index, slot| match index == at {
            true => Some(slot.given(model)),
            false => Some(slot.free()),
        });
        let text = slot.name.unraw().to_string();
        let refused = Refused {
            called: slot.name,
            message: format!("slot `{text}` of `{}` is filled twice", model.name),
            label: format!("`{text}` is already filled"),
            note: format!("remove one of the calls of `.{text}(..)`"),
            proof: format_ident!("SlotIsEmpty"),
        };
        let twice = refused.emit(
            &quote!(
                impl<#(#others),*> #builder<#set>
            ),
            &quote!(#vis fn #setter(self, _: #ty) -> Self),
            &quote!(Self),
        );
        quote! {
            #[automatically_derived]
            #[allow(dead_code, non_camel_case_types, private_interfaces, clippy::type_complexity)]
            impl<#(#others),*> #builder<#unset> {
                #(#docs)*
                #vis fn #setter(self, #setter: #ty) -> #builder<#set> {
                    self.#hidden(#setter)
                }
            }

            #twice
        }
    }

    /// `build` for a builder with all slots, and for one whose first missing slot
    /// is known.
    fn build(&self, slots: &Ident) -> TokenStream {
        let Self { model, when, builder, .. } = self;
        let (context, vis, word) = (model.name, model.vis, when.word());
        let all = self.fields(|_, slot| Some(slot.given(model)));
        let missing = self.slots.iter().enumerate().map(|(at, slot)| {
            let later: Vec<Ident> = self.slots[at + 1..].iter().map(|it| it.param()).collect();
            let fields = self.fields(|index, slot| match index.cmp(&at) {
                Ordering::Less => Some(slot.given(model)),
                Ordering::Equal => None,
                Ordering::Greater => Some(slot.free()),
            });
            let text = slot.name.unraw().to_string();
            let refused = Refused {
                called: slot.name,
                message: format!("slot `{text}` of `{context}` is missing"),
                label: format!("`.{text}(..)` is missing before `.build()`"),
                note: format!(
                    "write `{context}::{word}()`, then `.{text}(..)` and every other slot, then \
                     `.build()`"
                ),
                proof: format_ident!("SlotIsFilled"),
            };
            refused.emit(
                &quote!(impl<#(#later),*> #builder<#fields>),
                &quote!(#vis fn build(self) -> #slots),
                &quote!(#slots),
            )
        });
        quote! {
            #[automatically_derived]
            #[allow(dead_code, private_interfaces)]
            impl #builder<#all> {
                /// The filled slots.
                #vis fn build(self) -> #slots {
                    self.__build()
                }
            }

            #(#missing)*
        }
    }

    /// A setter that cannot be called. Its error names the builder that has the
    /// slot.
    fn mistimed(&self, slot: &Slot<'_>) -> TokenStream {
        let Self { model, when, builder, .. } = self;
        let (context, vis, setter) = (model.name, model.vis, &slot.setter);
        let (here, there) = (when.word(), slot.when.word());
        let text = slot.name.unraw().to_string();
        let ty = slot.plain_type(model);
        let refused = Refused {
            called: slot.name,
            message: format!("`{context}::{here}()` does not take slot `{text}`"),
            label: format!("`{text}` is filled {}", slot.when.moment()),
            note: format!("set it in `{context}::{there}()`"),
            proof: format_ident!("{}Slot", slot.when.title()),
        };
        refused.emit(
            &quote!(impl<TypedBuilderFields> #builder<TypedBuilderFields>),
            &quote!(#vis fn #setter(self, _: #ty) -> Self),
            &quote!(Self),
        )
    }

    /// The builder's parameter: `None` for a slot that is not set.
    fn fields(&self, field: impl Fn(usize, &Slot<'_>) -> Option<TokenStream>) -> TokenStream {
        let fields = self.slots.iter().enumerate().map(|(index, slot)| {
            let ty = field(index, slot).unwrap_or_else(|| quote!(()));
            quote!(#ty,)
        });
        quote!((#(#fields)*))
    }
}

/// A method that exists so that calling it is an error in our words.
struct Refused<'m> {
    /// The item of the user that the method belongs to.
    called: &'m Ident,
    message: String,
    label: String,
    note: String,
    /// A trait without implementations, which the compiler names.
    proof: Ident,
}

impl Refused<'_> {
    /// The bound is higher-ranked because rustc refuses a false one without
    /// parameters where it is declared, and not where it is used.
    fn emit(&self, on: &TokenStream, signature: &TokenStream, out: &TokenStream) -> TokenStream {
        let Self { called, message, label, note, proof } = self;
        let [message, label, note] =
            [message, label, note].map(|text| LitStr::new(text, called.span()));
        quote! {
            const _: () = {
                #[diagnostic::on_unimplemented(message = #message, label = #label, note = #note)]
                #[doc(hidden)]
                #[allow(unreachable_pub, dead_code)]
                pub trait #proof<'a, Out>: ::core::marker::Sized {
                    fn never(self) -> Out;
                }

                #[automatically_derived]
                #[allow(non_camel_case_types, private_interfaces, private_bounds)]
                #on {
                    #[doc(hidden)]
                    #[allow(dead_code)]
                    #signature
                    where
                        for<'a> Self: #proof<'a, #out>,
                    {
                        #proof::never(self)
                    }
                }
            };
        }
    }
}

impl Slot<'_> {
    fn plain_type(&self, model: &Model<'_>) -> TokenStream {
        text::without_self(self.ty, model.name)
    }

    /// What the builder holds once the slot is set.
    fn given(&self, model: &Model<'_>) -> TokenStream {
        let ty = self.plain_type(model);
        quote!((#ty,))
    }

    /// What the builder holds, set or not.
    fn free(&self) -> TokenStream {
        let param = self.param();
        quote!(#param)
    }

    fn param(&self) -> Ident {
        format_ident!("__{}", self.name.unraw())
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
