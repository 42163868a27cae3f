//! The name of a network interface.

use schemars::JsonSchema;
use serde::Deserialize;

/// A name that a network interface can have.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(try_from = "String")]
#[schemars(extend("pattern" = "^[^/%\\s\\x00]{1,15}$"))]
pub struct InterfaceName(String);

impl InterfaceName {
    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for InterfaceName {
    type Error = String;
    fn try_from(name: String) -> Result<Self, String> {
        let fits = (1..=15).contains(&name.len()) && name != "." && name != "..";
        if fits && !name.contains(|c: char| c == '/' || c == '%' || c == '\0' || c.is_whitespace()) {
            return Ok(Self(name));
        }
        Err(format!(
            "\"{name}\" is not an interface name; allowed are 1 to 15 bytes without space, slash or %"
        ))
    }
}
