//! Turns a [`Model`] into code.
//!
//! The update is a struct with one `Option` per field. Setters fill the fields,
//! and `apply` passes each filled field to the reducer's trait.

use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};
use syn::ext::IdentExt as _;
use syn::spanned::Spanned as _;

use super::model::{Field, Model, Reducer};
use super::parts::Parts;
use crate::text;

pub(super) fn emit(model: &Model<'_>) -> TokenStream {
    let update = update(model);
    let state = state(model);
    let provided = model.fields.iter().filter_map(|field| provided(model, field));
    quote!(#update #state #(#provided)*)
}

/// `struct ChatUpdate { .. }` with its setters.
fn update(model: &Model<'_>) -> TokenStream {
    let Model { vis, name, .. } = model;
    let update = format_ident!("{}Update", name);
    let text = update.to_string();
    let decoder = format!("{update}::__given");
    let encoder = format!("{update}::__give");
    let about = format!(
        "A partial update of [`{name}`]. Every field is optional.\n\n\
         Create one with `{name}::update()`."
    );
    let fields = model.fields.iter().map(|field| {
        let (name, stored) = (field.name, &field.stored);
        let slot = Parts::of(model, field).slot;
        quote! {
            #[serde(
                rename = #stored,
                default,
                deserialize_with = #decoder,
                serialize_with = #encoder,
                skip_serializing_if = "::core::option::Option::is_none"
            )]
            #name: ::core::option::Option<#slot>
        }
    });
    let setters = model.fields.iter().map(|field| setter(model, field));
    let listed = model.fields.iter().map(|field| {
        let (name, text) = (field.name, field.name.unraw().to_string());
        quote!((#text, self.#name.is_some()))
    });
    quote! {
        #[doc = #about]
        #[derive(
            ::core::default::Default,
            ::harness::state::Serialize,
            ::harness::state::Deserialize,
        )]
        #[serde(crate = "::harness::__private::serde", deny_unknown_fields)]
        #[must_use = "an update has no effect until a step returns it"]
        #vis struct #update { #(#fields),* }

        #[automatically_derived]
        #[allow(dead_code, private_bounds, private_interfaces)]
        impl #update {
            #(#setters)*

            /// Encodes a field that is present as its value.
            #[doc(hidden)]
            fn __give<S, T>(
                field: &::core::option::Option<T>,
                serializer: S,
            ) -> ::core::result::Result<S::Ok, S::Error>
            where
                S: ::harness::__private::serde::Serializer,
                T: ::harness::__private::serde::Serialize,
            {
                match field {
                    ::core::option::Option::Some(value) => value.serialize(serializer),
                    ::core::option::Option::None => serializer.serialize_none(),
                }
            }

            /// Decodes a field that is present, so that `null` is a value.
            #[doc(hidden)]
            fn __given<'de, D, T>(
                deserializer: D,
            ) -> ::core::result::Result<::core::option::Option<T>, D::Error>
            where
                D: ::harness::__private::serde::Deserializer<'de>,
                T: ::harness::__private::serde::Deserialize<'de>,
            {
                T::deserialize(deserializer).map(::core::option::Option::Some)
            }
        }

        #[automatically_derived]
        impl ::core::fmt::Debug for #update {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                ::harness::__private::fmt_update(f, #text, &[#(#listed),*])
            }
        }
    }
}

fn setter(model: &Model<'_>, field: &Field<'_>) -> TokenStream {
    let (vis, name, docs) = (model.vis, field.name, &field.docs);
    let Parts { takes, fill, about, .. } = Parts::of(model, field);
    let about = format!("{}{about}", if docs.is_empty() { "" } else { "\n" });
    quote! {
        #(#docs)*
        #[doc = #about]
        #vis fn #name(mut self, #name: #takes) -> Self {
            #fill
            self
        }
    }
}

/// `impl Has<Transcript> for Chat`, which the compiler does not list for other states, with the span of `provides`.
fn provided(model: &Model<'_>, field: &Field<'_>) -> Option<TokenStream> {
    let span = field.provides?;
    let (state, name) = (model.name, field.name);
    let update = format_ident!("{}Update", state);
    let ty = text::point_at(&text::without_self(field.ty, state), span);
    let change = text::point_at(&Parts::of(model, field).change, span);
    Some(quote_spanned! {span=>
        #[automatically_derived]
        #[diagnostic::do_not_recommend]
        impl ::harness::state::Has<#ty> for #state {
            type Change = #change;

            fn part(&self) -> &#ty {
                &self.#name
            }

            fn change(update: #update, change: Self::Change) -> #update {
                update.#name(change)
            }
        }
    })
}

fn state(model: &Model<'_>) -> TokenStream {
    let Model { vis, name, version, .. } = model;
    let update = format_ident!("{}Update", name);
    let folds = model.fields.iter().map(|field| {
        let (name, fold) = (field.name, Parts::of(model, field).fold);
        quote! {
            if let ::core::option::Option::Some(change) = update.#name {
                #fold
            }
        }
    });
    let listed = model.fields.iter().map(|field| {
        let (stored, type_name) = (&field.stored, text::type_name(field.ty));
        let reducer = field.reducer.name();
        match field.reducer {
            Reducer::Nest => {
                let ty = text::without_self(field.ty, name);
                let schema =
                    quote_spanned!(field.span=> <#ty as ::harness::state::State>::schema());
                quote!(.nest(#stored, #type_name, #schema))
            }
            _ => quote!(.field(#stored, #type_name, #reducer)),
        }
    });
    // Sets the span of each migration function, for errors about it.
    let chain = model.migrate.split_first().map(|(first, older)| {
        let mut chain = quote_spanned! {first.span()=>
            ::harness::state::Migration::<Self>::chain(#first)
        };
        for path in older {
            chain = quote_spanned!(path.span()=> #chain.older(#path));
        }
        chain
    });
    let migration = chain.map(|chain| {
        quote! {
            fn migration() -> ::core::option::Option<::harness::state::Migration<Self>> {
                ::core::option::Option::Some(#chain.build())
            }
        }
    });
    let starts = format!("An empty update: [`{update}`].");
    quote! {
        // Not only the trait's function: a call of that would repeat each error about the state.
        #[automatically_derived]
        impl #name {
            #[doc = #starts]
            #[allow(dead_code)]
            #vis fn update() -> #update {
                ::core::default::Default::default()
            }
        }

        #[automatically_derived]
        #[diagnostic::do_not_recommend]
        impl ::harness::state::State for #name {
            type Update = #update;

            const VERSION: u32 = #version;

            #[allow(unused_variables, clippy::let_unit_value)]
            fn apply(&mut self, update: #update, ops: &mut ::harness::state::Ops) {
                #(#folds)*
            }

            fn schema() -> ::harness::state::Schema {
                ::harness::state::Schema::new(#version) #(#listed)*
            }

            #migration
        }
    }
}

impl Reducer {
    /// The field's name in the schema.
    pub(super) fn name(&self) -> String {
        match self {
            Self::Replace => "replace".to_owned(),
            Self::Append => "append".to_owned(),
            Self::Add => "add".to_owned(),
            Self::Max => "max".to_owned(),
            Self::Min => "min".to_owned(),
            Self::First => "first".to_owned(),
            Self::Union => "union".to_owned(),
            Self::Merge => "merge".to_owned(),
            Self::Upsert(key) => format!("upsert({})", key.unraw()),
            Self::Transcript => "transcript".to_owned(),
            Self::Nest => "nest".to_owned(),
            Self::Custom(path, _) => text::type_name(path),
        }
    }
}
