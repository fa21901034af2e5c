//! Tensors of a safetensors file, as 32-bit numbers.

use ndarray::{Array1, Array2};
use safetensors::{Dtype, SafeTensors};

/// A model's tensors.
pub(super) struct Weights<'a> {
    tensors: SafeTensors<'a>,
    /// What precedes the names: a model with a head on top has its own name before them.
    prefix: &'static str,
}

const PREFIXES: [&str; 4] = ["", "bert.", "roberta.", "model."];

impl<'a> Weights<'a> {
    pub(super) fn of(file: &'a [u8]) -> Result<Self, String> {
        let tensors = SafeTensors::deserialize(file).map_err(|error| error.to_string())?;
        let prefix = PREFIXES
            .into_iter()
            .find(|prefix| {
                let name = format!("{prefix}embeddings.word_embeddings.weight");
                tensors.tensor(&name).is_ok()
            })
            .ok_or("it holds no embeddings.word_embeddings.weight")?;
        Ok(Self { tensors, prefix })
    }

    /// A matrix of that shape.
    pub(super) fn matrix(
        &self,
        name: &str,
        rows: usize,
        columns: usize,
    ) -> Result<Array2<f32>, String> {
        let values = self.values(name, &[rows, columns])?;
        Array2::from_shape_vec((rows, columns), values).map_err(|error| error.to_string())
    }

    /// A vector of that length.
    pub(super) fn vector(&self, name: &str, length: usize) -> Result<Array1<f32>, String> {
        self.values(name, &[length]).map(Array1::from_vec)
    }

    fn values(&self, name: &str, shape: &[usize]) -> Result<Vec<f32>, String> {
        let name = format!("{}{name}", self.prefix);
        let tensor = self
            .tensors
            .tensor(&name)
            .map_err(|_| format!("it holds no {name}"))?;
        if tensor.shape() != shape {
            return Err(format!(
                "{name} has the shape {:?} instead of {shape:?}",
                tensor.shape()
            ));
        }
        let data = tensor.data();
        Ok(match tensor.dtype() {
            Dtype::F32 => data
                .as_chunks::<4>()
                .0
                .iter()
                .map(|b| f32::from_le_bytes(*b))
                .collect(),
            Dtype::F16 => halves(data).map(from_half).collect(),
            Dtype::BF16 => halves(data).map(from_bfloat).collect(),
            other => return Err(format!("{name} has numbers of type {other:?}")),
        })
    }
}

fn halves(data: &[u8]) -> impl Iterator<Item = u16> {
    data.as_chunks::<2>()
        .0
        .iter()
        .map(|b| u16::from_le_bytes(*b))
}

fn from_bfloat(bits: u16) -> f32 {
    f32::from_bits(u32::from(bits) << 16)
}

/// IEEE 754 binary16: one bit of sign, five of exponent with bias 15, ten of fraction.
fn from_half(bits: u16) -> f32 {
    let sign = if bits >> 15 == 1 { -1.0 } else { 1.0 };
    let exponent = i32::from(bits >> 10 & 0x1f);
    let fraction = f32::from(bits & 0x3ff) / 1024.0;
    sign * match exponent {
        0 => fraction * 2f32.powi(-14),
        0x1f if fraction == 0.0 => f32::INFINITY,
        0x1f => f32::NAN,
        _ => (1.0 + fraction) * 2f32.powi(exponent - 15),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_numbers_are_read_exactly() {
        for (bits, value) in [
            (0x0000, 0.0),
            (0x3c00, 1.0),
            (0xc000, -2.0),
            (0x3555, 0.333_251_95),
            (0x7bff, 65_504.0),
            (0x0001, 5.960_464_5e-8),
            (0x7c00, f32::INFINITY),
        ] {
            assert_eq!(from_half(bits).to_bits(), f32::to_bits(value), "{bits:#x}");
        }
        assert!(from_half(0x7e00).is_nan());
        assert_eq!(from_bfloat(0x3f80).to_bits(), 1f32.to_bits());
        assert_eq!(from_bfloat(0xc040).to_bits(), (-3f32).to_bits());
    }
}
