//! JSON schemas of types, as models read them.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::Value;

/// The schema of `T`, without references where possible, because some protocols do not support
/// them.
pub(crate) fn schema_of<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.meta_schema = None;
        settings.inline_subschemas = true;
    });
    Value::from(settings.into_generator().into_root_schema_for::<T>())
}
