//! The calculations of chapters 1 to 4, with samples where a claim can be sampled, and figure 4-2.

mod arithmetic;
mod bit_errors;
mod capacity;
mod chain;
mod frame_size;

use super::Topic;
use crate::report::Figure;
use crate::reproduce::{Cell, Samples};

pub(super) const TOPIC: Topic = Topic {
    experiments: &[
        arithmetic::ARITHMETIC,
        arithmetic::CLEAR_LINK,
        chain::SOJOURNS,
        chain::SHORT_BLOCKAGES,
        frame_size::FRAGMENTS,
        frame_size::SIZES,
        frame_size::SATURATED,
        frame_size::BULK,
        capacity::CAPACITY,
    ],
    rule: |claim, samples| {
        arithmetic::rule(claim, samples)
            .or_else(|| chain::rule(claim, samples))
            .or_else(|| frame_size::rule(claim, samples))
            .or_else(|| bit_errors::rule(claim, samples))
            .or_else(|| capacity::rule(claim, samples))
    },
    remark,
    cells,
    figures,
};

fn cells(samples: &Samples) -> Vec<Cell> {
    let mut cells = capacity::cells(samples);
    cells.extend(frame_size::cells(samples));
    cells
}

fn figures(samples: &Samples) -> Vec<Figure> {
    let mut figures = capacity::figures(samples);
    figures.extend(frame_size::figures(samples));
    figures.extend(bit_errors::figures(samples));
    figures
}

/// The chance that `bits` bits all pass at this bit error rate.
fn intact(ber: f64, bits: f64) -> f64 {
    libm::exp(bits * libm::log1p(-ber))
}

fn remark(claim: &str) -> Option<&'static str> {
    Some(match claim {
        "faulkner-loss-threshold" => {
            "The arithmetic holds, but the rule counts packets and the thesis took the product in bytes: in packets of \
             1500 bytes the threshold is 8.4e-3, 2.25 million times as much."
        }
        "faulkner-frame-overhead" => {
            "True of a full frame. A packet of 1500 bytes takes three full frames and a short one, 2.3 %."
        }
        "faulkner-frame-size-optimum" => {
            "The calculation holds, and the link carries what it says up to 1e-6, frames of 512 bits excepted. From 1e-5 on \
             it carries less: one gap is told of at a time, a round trip each, and more frames are lost than that. With a delay \
             of 25 ms instead of 250, or told of the block that came last (ours), frames of 3968 bits carry 0.93 at 1e-5, not \
             0.82. At 1e-4, which section 4.1.1 calls frequent in the field, the best size gains more than a quarter; the claim looks \
             at the good side only."
        }
        "faulkner-localised-errors-leave-capacity" => {
            "A quarter of the time blocked damages an eighth of the bits, so the fair opponent has 0.456; the conclusion stands."
        }
        "faulkner-bsc-prediction" => {
            "The printed 1 - p^(11-1) is not the chance that none of ten other packets is lost, and stays at 1 up to \
             a bit error rate of 1e-5; (1 - p)^10 is what the text says and what the drops follow."
        }
        "faulkner-symmetry-factor" => {
            "A ratio of bandwidths takes bytes on the line on both sides: 61 over 1536, 3.97 %, and half of that where \
             every second segment is acknowledged."
        }
        _ => return None,
    })
}
