//! `#[tool]` on an async function.

use proc_macro2::TokenStream;
use quote::{ToTokens as _, quote};
use syn::ext::IdentExt as _;
use syn::{Attribute, Expr, FnArg, Ident, ItemFn, Lit, Meta, Pat, PatType, ReturnType, Type};

use crate::attr::{Known, Options, Table, Takes, Value};
use crate::diagnostics::Errors;

static ON_FN: Table = Table {
    attr: "tool",
    place: "a function",
    known: &[
        Known { name: "read", example: "read", takes: Takes::Nothing },
        Known { name: "write", example: "write", takes: Takes::Nothing },
        Known { name: "external", example: "external", takes: Takes::Nothing },
        Known { name: "destructive", example: "destructive", takes: Takes::Nothing },
        Known { name: "timeout", example: "timeout = Duration::from_secs(30)", takes: Takes::Expr },
        Known { name: "name", example: "name = \"find\"", takes: Takes::Str },
        Known { name: "description", example: "description = \"Finds\"", takes: Takes::Str },
    ],
    elsewhere: None,
};

const CLASSES: [(&str, &str); 4] = [
    ("read", "Read"),
    ("write", "Write"),
    ("external", "External"),
    ("destructive", "Destructive"),
];

/// A function that becomes a tool.
struct Model<'a> {
    function: &'a ItemFn,
    name: String,
    description: String,
    class: Option<Ident>,
    timeout: Option<Box<Expr>>,
    parameters: Vec<Parameter<'a>>,
}

struct Parameter<'a> {
    name: &'a Ident,
    ty: &'a Type,
    /// Its documentation and its options for serde and schemars.
    attrs: Vec<&'a Attribute>,
    /// Given by the caller of the tool, not by the model.
    injected: bool,
}

pub(crate) fn expand(args: TokenStream, function: &ItemFn) -> TokenStream {
    let mut errors = Errors::default();
    let model = parse(args, function, &mut errors);
    match errors.is_empty() {
        true => emit(&model),
        // The function stays, so that its callers cause no further errors.
        false => {
            let mut plain = function.clone();
            plain.sig.inputs.iter_mut().for_each(|input| match input {
                FnArg::Typed(typed) => typed.attrs.clear(),
                FnArg::Receiver(receiver) => receiver.attrs.clear(),
            });
            errors.with(quote!(#[allow(dead_code)] #plain))
        }
    }
}

fn parse<'a>(args: TokenStream, function: &'a ItemFn, errors: &mut Errors) -> Model<'a> {
    let mut options = Options::parse(args, &ON_FN, errors);
    let signature = &function.sig;
    let name = &signature.ident;
    if signature.asyncness.is_none() {
        errors.push(
            signature.fn_token,
            format!("tool `{name}` is not async (write `async fn {name}`)"),
        );
    }
    if !signature.generics.params.is_empty() {
        errors.push(
            &signature.generics,
            format!("tool `{name}` is generic (a model calls one function: write its types)"),
        );
    }
    let returns = match &signature.output {
        ReturnType::Type(_, ty) => matches!(&**ty, Type::Path(path)
            if path.path.segments.last().is_some_and(|last| last.ident.to_string().ends_with("Result"))),
        ReturnType::Default => false,
    };
    if !returns {
        errors.push(
            name,
            format!(
                "tool `{name}` does not return a `Result` (write `-> Result<String, ToolError>`, with \
                 any result that converts into `Content`)"
            ),
        );
    }
    let described = match options.take("description") {
        Some((_, Value::Str(text))) => text.value(),
        _ => documentation(&function.attrs),
    };
    if described.trim().is_empty() {
        errors.push(
            name,
            format!("tool `{name}` has no description (add a doc comment: the model reads it)"),
        );
    }
    let mut class = None;
    for (option, variant) in CLASSES {
        if let Some((key, _)) = options.take(option) {
            if class.is_some() {
                errors.push(&key, format!("tool `{name}` has two classes (remove one of them)"));
            }
            class = Some(Ident::new(variant, key.span()));
        }
    }
    let timeout = match options.take("timeout") {
        Some((_, Value::Expr(limit))) => Some(limit),
        _ => None,
    };
    let stored = match options.take("name") {
        Some((_, Value::Str(stored))) => stored.value(),
        _ => name.unraw().to_string(),
    };
    let parameters =
        signature.inputs.iter().filter_map(|input| parameter(input, name, errors)).collect();
    Model { function, name: stored, description: described, class, timeout, parameters }
}

fn parameter<'a>(input: &'a FnArg, tool: &Ident, errors: &mut Errors) -> Option<Parameter<'a>> {
    let FnArg::Typed(PatType { attrs, pat, ty, .. }) = input else {
        errors.push(
            input,
            format!("tool `{tool}` has a receiver (a tool is a free function: use `#[inject]`)"),
        );
        return None;
    };
    let Pat::Ident(pattern) = &**pat else {
        errors.push(pat, format!("a parameter of tool `{tool}` has no name (write `name: Type`)"));
        return None;
    };
    let name = &pattern.ident;
    if let Type::Reference(reference) = &**ty {
        errors.push(
            reference,
            format!("parameter `{name}` of tool `{tool}` borrows (a tool owns what it is given)"),
        );
    }
    let injected = attrs.iter().any(|attr| attr.path().is_ident("inject")) || is_cx(ty);
    let kept = |attr: &&Attribute| {
        ["doc", "serde", "schemars"].iter().any(|known| attr.path().is_ident(known))
    };
    Some(Parameter { name, ty, attrs: attrs.iter().filter(kept).collect(), injected })
}

/// A `Cx` cannot come from a model.
fn is_cx(ty: &Type) -> bool {
    matches!(ty, Type::Path(path) if path.path.segments.last().is_some_and(|last| last.ident == "Cx"))
}

/// The text of the doc comments.
fn documentation(attrs: &[Attribute]) -> String {
    let mut lines = Vec::new();
    for attr in attrs.iter().filter(|attr| attr.path().is_ident("doc")) {
        if let Meta::NameValue(pair) = &attr.meta
            && let Expr::Lit(literal) = &pair.value
            && let Lit::Str(text) = &literal.lit
        {
            lines.extend(text.value().split('\n').map(|line| line.trim().to_owned()));
        }
    }
    lines.join("\n").trim().to_owned()
}

fn emit(model: &Model<'_>) -> TokenStream {
    let Model { function, name, description, class, timeout, parameters } = model;
    let ItemFn { attrs, vis, sig, block } = function;
    let (tool, output) = (&sig.ident, &sig.output);
    let private = quote!(::harness::__private);
    let class = class.iter().map(|class| quote!(.effect(::harness::llm::EffectClass::#class)));
    let timeout = timeout.iter().map(|limit| quote!(.timeout(#limit)));
    let inputs = parameters.iter().map(|Parameter { name, ty, .. }| quote!(#name: #ty));
    let given = parameters.iter().map(|it| it.name);
    let fields = parameters.iter().filter(|it| !it.injected).map(|it| {
        let Parameter { name, ty, attrs, .. } = it;
        quote!(#(#attrs)* #name: #ty)
    });
    let names: Vec<_> = parameters.iter().filter(|it| !it.injected).map(|it| it.name).collect();
    let injected = parameters.iter().filter(|it| it.injected).map(|Parameter { name, ty, .. }| {
        quote!(let #name = ::std::clone::Clone::clone(cx.get::<#ty>()?);)
    });
    let (docs, others): (Vec<_>, Vec<_>) =
        attrs.iter().partition(|attr| attr.path().is_ident("doc"));
    let output = output.to_token_stream();
    let run = format!("Runs the function of the tool `{name}`.");
    quote! {
        #(#docs)*
        #[allow(non_camel_case_types)]
        #[derive(Clone, Copy, Debug)]
        #vis struct #tool;

        impl #tool {
            #[doc = #run]
            #[allow(clippy::too_many_arguments)]
            #(#others)*
            #vis async fn run(#(#inputs),*) #output #block
        }

        const _: () = {
            #[derive(#private::serde::Deserialize, ::harness::llm::schemars::JsonSchema)]
            #[serde(crate = "::harness::__private::serde")]
            #[schemars(crate = "::harness::llm::schemars", title = #name)]
            struct Arguments { #(#fields,)* }

            #[#private::async_trait]
            impl ::harness::llm::Tool for #tool {
                fn spec(&self) -> ::harness::llm::ToolSpec {
                    ::harness::llm::ToolSpec::new(#name, #description, #private::schema::<Arguments>())
                        #(#class)*
                        #(#timeout)*
                }

                async fn call(
                    &self,
                    call: &::harness::llm::ToolCall,
                    cx: &::harness::llm::ToolCx,
                ) -> ::std::result::Result<::harness::llm::Content, ::harness::llm::ToolError> {
                    let Arguments { #(#names),* } = call.args()?;
                    #(#injected)*
                    let _ = cx;
                    ::std::result::Result::Ok(#tool::run(#(#given),*).await?.into())
                }
            }
        };
    }
}
