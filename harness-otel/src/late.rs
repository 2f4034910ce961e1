//! Spans of tasks that outlive what they were made in.

use opentelemetry::Context;
use opentelemetry::trace::{Link, SpanBuilder, TraceContextExt as _, Tracer};

/// Gives a span whose parent is over a trace of its own, with a link: a back end shows a run as over
/// when its span is.
#[derive(Clone, Debug)]
pub(crate) struct Late<T>(pub(crate) T);

impl<T: Tracer> Tracer for Late<T> {
    type Span = T::Span;

    fn build_with_context(&self, mut builder: SpanBuilder, parent: &Context) -> Self::Span {
        let (is_recording, context) = {
            let span = parent.span();
            (span.is_recording(), span.span_context().clone())
        };
        // One of another process, or that is not sampled, does not record either.
        if is_recording || context.is_remote() || !context.is_sampled() {
            return self.0.build_with_context(builder, parent);
        }
        builder.links.get_or_insert_default().push(Link::with_context(context));
        self.0.build_with_context(builder, &Context::new())
    }
}
