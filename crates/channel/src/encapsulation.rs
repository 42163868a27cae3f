//! How frames are put into the cells, packets or bursts of a satellite's physical layer, and what that costs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A way to put frames on the air, by name or by its numbers.
///
/// ```toml
/// encapsulation = { down = "mpe", up = "aal5" }
/// encapsulation.up = { cells = { cell = 53, payload = 48, frame = 100 } }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Encapsulation {
    /// ATM cells of 53 bytes, 48 of them payload; a trailer of 8 bytes, then padding to the end of the cell: AAL5 with one protocol
    /// a virtual circuit. DVB-RCS's return link.
    Aal5,
    /// ATM cells of 53 bytes, 48 of them payload; 8 bytes of LLC and SNAP, a trailer of 8, then padding to the end of
    /// the cell: AAL5 with several protocols on a virtual circuit.
    Aal5Llc,
    /// MPEG transport stream packets of 188 bytes, 184 of them payload; sections with a header of 12 bytes, a checksum of 4 and a
    /// pointer of 1, one behind the other. DVB-S's forward link.
    Mpe,
    /// Baseband frames of DVB-S2 of 4026 bytes (normal frames, rate 1/2), 10 of them header; 10 bytes a frame, with a label of 6.
    Gse,
    /// Bursts of DVB-RCS2 of 123 bytes, of which a fragment's header takes 2; 4 bytes a frame for the length and the protocol.
    Rle,
    /// Something else.
    Cells(Cells),
}

/// The numbers of an encapsulation, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, try_from = "Written", into = "Written")]
#[schemars(!try_from, !into)]
pub struct Cells {
    /// Length of a cell on the air.
    #[schemars(range(min = 1))]
    cell: u16,
    /// How many bytes of a cell carry frames.
    #[schemars(range(min = 1))]
    payload: u16,
    /// Extra bytes per frame.
    #[schemars(default)]
    frame: u16,
    /// Whether a frame may begin in the cell in which the one before ends.
    #[schemars(default)]
    packs: bool,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Written {
    cell: u16,
    payload: u16,
    #[serde(default)]
    frame: u16,
    #[serde(default)]
    packs: bool,
}

/// Cells that carry nothing, or more than they have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a payload of {payload} bytes in cells of {cell} bytes; allowed are 1 to the cell's length")]
pub struct NotCells {
    cell: u16,
    payload: u16,
}

impl TryFrom<Written> for Cells {
    type Error = NotCells;
    fn try_from(Written { cell, payload, frame, packs }: Written) -> Result<Self, NotCells> {
        let allowed = (1..=cell).contains(&payload);
        if allowed { Ok(Self { cell, payload, frame, packs }) } else { Err(NotCells { cell, payload }) }
    }
}

impl From<Cells> for Written {
    fn from(Cells { cell, payload, frame, packs }: Cells) -> Self {
        Self { cell, payload, frame, packs }
    }
}

impl Encapsulation {
    const fn cells(self) -> Cells {
        let (cell, payload, frame, packs) = match self {
            Self::Aal5 => (53, 48, 8, false),
            Self::Aal5Llc => (53, 48, 16, false),
            Self::Mpe => (188, 184, 17, true),
            Self::Gse => (4026, 4016, 10, true),
            Self::Rle => (123, 121, 4, true),
            Self::Cells(cells) => return cells,
        };
        Cells { cell, payload, frame, packs }
    }

    /// Bits of a cell on the air.
    #[must_use]
    pub const fn cell_bits(self) -> u32 {
        self.cells().cell as u32 * 8
    }

    /// Bytes of a cell that carry frames.
    #[must_use]
    pub const fn cell_payload(self) -> u64 {
        self.cells().payload as u64
    }

    /// Bytes of cells' payload that a frame of `len` bytes takes; where the next one begins in a new cell, padding included.
    #[must_use]
    pub const fn payload_for(self, len: usize) -> u64 {
        let Cells { payload, frame, packs, .. } = self.cells();
        let bytes = len as u64 + frame as u64;
        if packs { bytes } else { bytes.next_multiple_of(payload as u64) }
    }

    /// Bits on the air of a frame of `len` bytes; of cells that it shares with others, its part.
    #[must_use]
    pub const fn air_bits(self, len: usize) -> u64 {
        let Cells { cell, payload, .. } = self.cells();
        (self.payload_for(len) * cell as u64 * 8).div_ceil(payload as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 2684 and the MTU of Kojo et al. 2005; 1450 bytes and the trailer fill 31 cells, which take 102.7 ms at 128 kbit/s.
    #[test]
    fn frames_fill_cells() {
        let cells = |encapsulation: Encapsulation, len| {
            encapsulation.air_bits(len) as f64 / f64::from(encapsulation.cell_bits())
        };
        assert!((cells(Encapsulation::Aal5, 1450) - 31.0).abs() < 1e-9);
        // An acknowledgement of 40 bytes fills one cell with its trailer, and spills into a second with LLC.
        assert!((cells(Encapsulation::Aal5, 40) - 1.0).abs() < 1e-9);
        assert!((cells(Encapsulation::Aal5Llc, 40) - 2.0).abs() < 1e-9);
        assert_eq!(Encapsulation::Mpe.air_bits(1450), (1467_u64 * 188 * 8).div_ceil(184));
        assert_eq!(Encapsulation::Rle.payload_for(100), 104);
    }

    #[test]
    fn numbers_of_ones_own_are_checked_and_written_back() {
        #[derive(Debug, PartialEq, Serialize, Deserialize)]
        struct Link {
            up: Encapsulation,
        }
        let read = |text: &str| base::config::parse::<Link>("s.toml", &format!("up = {text}"));
        for text in ["\"aal5\"", "\"aal5-llc\"", "{ cells = { cell = 53, payload = 48, frame = 100 } }"] {
            let link = read(text).unwrap();
            assert_eq!(
                base::config::parse::<Link>("s.toml", &toml::to_string(&link).unwrap()).unwrap(),
                link
            );
        }
        for text in ["{ cells = { cell = 53, payload = 54 } }", "{ cells = { cell = 53, payload = 0 } }"] {
            let complaint = read(text).unwrap_err().to_string();
            assert!(complaint.contains("allowed are 1 to the cell's length"), "{complaint}");
        }
    }
}
