//! The points of metrics as text.

use std::collections::BTreeMap;

use harness_otel::semconv;
use opentelemetry::KeyValue;
use opentelemetry_sdk::metrics::data::{
    AggregatedMetrics, HistogramDataPoint, MetricData, ResourceMetrics,
};

use crate::rig::attributes;

/// Of the last export.
pub fn of(exported: &[ResourceMetrics]) -> BTreeMap<String, Vec<String>> {
    let mut points = BTreeMap::new();
    let metrics = exported.last().into_iter().flat_map(|it| it.scope_metrics());
    for metric in metrics.flat_map(|scope| scope.metrics()) {
        let mut of_it = match metric.data() {
            // Of time that the tests control.
            AggregatedMetrics::F64(MetricData::Histogram(ages))
                if metric.name() == semconv::QUEUE_AGE =>
            {
                let point = |it: &HistogramDataPoint<f64>| {
                    let named: Vec<_> = it.attributes().cloned().collect();
                    format!("{}: {} times, {} s", attributes(&named), it.count(), it.sum())
                };
                ages.data_points().map(point).collect()
            }
            AggregatedMetrics::F64(data) => data_points(data, |value| format!("{value:.4}")),
            AggregatedMetrics::U64(data) => data_points(data, |value| value.to_string()),
            AggregatedMetrics::I64(data) => data_points(data, |value| value.to_string()),
        };
        of_it.sort();
        points.insert(metric.name().to_owned(), of_it);
    }
    points
}

fn data_points<T: Copy>(data: &MetricData<T>, show: impl Fn(T) -> String) -> Vec<String> {
    let named = |attributes_of: Vec<KeyValue>| attributes(&attributes_of);
    match data {
        MetricData::Histogram(histogram) => histogram
            .data_points()
            .map(|it| {
                format!("{}: {} times", named(it.attributes().cloned().collect()), it.count())
            })
            .collect(),
        MetricData::Sum(sum) => sum
            .data_points()
            .map(|it| {
                format!("{}: {}", named(it.attributes().cloned().collect()), show(it.value()))
            })
            .collect(),
        _ => Vec::new(),
    }
}
