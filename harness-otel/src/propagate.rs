//! The contexts of spans, in the form of the W3C.

use std::collections::HashMap;

use harness::observe::trace::{Carrier, Content, Propagate, Relation};
use opentelemetry::KeyValue;
use opentelemetry::propagation::TextMapPropagator as _;
use opentelemetry::trace::TraceContextExt as _;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

use crate::semconv;

/// Stores and restores the contexts of spans as `traceparent` and `tracestate`.
pub(crate) struct W3c(TraceContextPropagator);

impl W3c {
    pub(crate) fn new() -> Self {
        Self(TraceContextPropagator::new())
    }
}

impl Propagate for W3c {
    fn capture(&self, span: &Span) -> Option<Carrier> {
        let context = span.context();
        if !context.span().span_context().is_sampled() {
            return None;
        }
        let mut carrier = HashMap::new();
        self.0.inject_context(&context, &mut carrier);
        carrier.retain(|_, value| !value.is_empty());
        Some(carrier.into_iter().collect())
    }

    fn relate(&self, span: &Span, to: &Carrier, relation: Relation) {
        let carrier: HashMap<String, String> =
            to.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
        let context = self.0.extract_with_context(&opentelemetry::Context::new(), &carrier);
        if !context.span().span_context().is_valid() {
            return;
        }
        if relation == Relation::Parent {
            // A span that has begun keeps its parent.
            let _ = span.set_parent(context);
        } else {
            let name = match relation {
                Relation::Answer => "answer",
                Relation::Input => "input",
                Relation::Caller => "caller",
                _ => "previous",
            };
            let relation = vec![KeyValue::new(semconv::RELATION, name)];
            span.add_link_with_attributes(context.span().span_context().clone(), relation);
        }
    }

    fn content(&self, span: &Span, content: Content<'_>) {
        crate::content::record(span, content);
    }

    fn end(&self, span: &Span) {
        span.context().span().end();
    }
}
