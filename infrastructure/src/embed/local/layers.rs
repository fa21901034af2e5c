//! The parts of a transformer's layer, on matrices whose rows are tokens.

use ndarray::{Array1, Array2, ArrayView2, ArrayViewMut1, Axis};

use super::weights::Weights;

/// `x · Wᵀ + b`.
pub(super) struct Linear {
    weight: Array2<f32>,
    bias: Array1<f32>,
}

impl Linear {
    pub(super) fn load(
        weights: &Weights<'_>,
        name: &str,
        inputs: usize,
        outputs: usize,
    ) -> Result<Self, String> {
        Ok(Self {
            weight: weights.matrix(&format!("{name}.weight"), outputs, inputs)?,
            bias: weights.vector(&format!("{name}.bias"), outputs)?,
        })
    }

    pub(super) fn apply(&self, x: &ArrayView2<'_, f32>) -> Array2<f32> {
        x.dot(&self.weight.t()) + &self.bias
    }
}

/// Each row to mean 0 and variance 1, then scaled and shifted (arXiv 1607.06450).
pub(super) struct LayerNorm {
    weight: Array1<f32>,
    bias: Array1<f32>,
    epsilon: f32,
}

impl LayerNorm {
    pub(super) fn load(
        weights: &Weights<'_>,
        name: &str,
        size: usize,
        epsilon: f32,
    ) -> Result<Self, String> {
        Ok(Self {
            weight: weights.vector(&format!("{name}.weight"), size)?,
            bias: weights.vector(&format!("{name}.bias"), size)?,
            epsilon,
        })
    }

    pub(super) fn apply(&self, x: &mut Array2<f32>) {
        let size = x.ncols() as f32;
        for mut row in x.rows_mut() {
            let mean = row.sum() / size;
            let variance = row.iter().map(|v| (v - mean) * (v - mean)).sum::<f32>() / size;
            let scale = 1.0 / (variance + self.epsilon).sqrt();
            for ((v, weight), bias) in row.iter_mut().zip(&self.weight).zip(&self.bias) {
                *v = (*v - mean) * scale * weight + bias;
            }
        }
    }
}

/// What stands between the two halves of the feed-forward network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Activation {
    Gelu,
    /// The approximation by a hyperbolic tangent.
    GeluTanh,
    Relu,
}

impl Activation {
    pub(super) fn parse(name: &str) -> Option<Self> {
        match name {
            "gelu" => Some(Self::Gelu),
            "gelu_new" | "gelu_pytorch_tanh" | "gelu_fast" => Some(Self::GeluTanh),
            "relu" => Some(Self::Relu),
            _ => None,
        }
    }

    pub(super) fn apply(self, x: &mut Array2<f32>) {
        match self {
            Self::Gelu => {
                x.mapv_inplace(|v| 0.5 * v * (1.0 + erf(v * std::f32::consts::FRAC_1_SQRT_2)));
            }
            // arXiv 1606.08415.
            Self::GeluTanh => {
                x.mapv_inplace(|v| {
                    0.5 * v * (1.0 + (0.797_884_6 * (v + 0.044_715 * v * v * v)).tanh())
                });
            }
            Self::Relu => x.mapv_inplace(|v| v.max(0.0)),
        }
    }
}

/// The error function within 2e-7: the rational approximation of Eigen's and XLA's `erf` for 32 bits. Without branches, so that it is computed
/// for several numbers at once.
#[expect(clippy::excessive_precision, reason = "as published")]
fn erf(x: f32) -> f32 {
    let x = x.clamp(-4.0, 4.0);
    let y = x * x;
    let mut p = -2.726_142_258_013_06e-10_f32;
    for c in [
        2.770_681_424_959_02e-08,
        -2.101_024_020_825_08e-06,
        -5.692_506_394_623_46e-05,
        -7.349_906_303_268_55e-04,
        -2.954_599_808_540_25e-03,
        -1.609_603_332_624_15e-02,
    ] {
        p = p * y + c;
    }
    let mut q = -1.456_607_184_649_96e-05_f32;
    for c in [
        -2.133_740_552_789_05e-04,
        -1.682_826_974_382_03e-03,
        -7.373_329_167_204_68e-03,
        -1.426_473_905_141_89e-02,
    ] {
        q = q * y + c;
    }
    x * p / q
}

/// Makes each row weights that sum to 1.
pub(super) fn softmax_rows(x: &mut Array2<f32>) {
    for row in x.axis_iter_mut(Axis(0)) {
        softmax(row);
    }
}

fn softmax(mut row: ArrayViewMut1<'_, f32>) {
    let most = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    row.mapv_inplace(|v| (v - most).exp());
    let sum = row.sum();
    row.mapv_inplace(|v| v / sum);
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use ndarray::array;

    use super::*;

    #[test]
    fn the_error_function_is_that_of_the_tables() {
        // Abramowitz and Stegun, table 7.1.
        for (x, value) in [
            (0.0, 0.0),
            (0.1, 0.112_462_9),
            (0.5, 0.520_499_9),
            (1.0, 0.842_700_8),
            (1.5, 0.966_105_1),
            (2.0, 0.995_322_3),
            (3.0, 0.999_977_9),
            (9.0, 1.0),
        ] {
            assert!((erf(x) - value).abs() < 3e-7, "erf({x}) = {}", erf(x));
            assert!((erf(-x) + value).abs() < 3e-7);
        }
    }

    #[test]
    fn weights_of_attention_sum_to_one_even_for_large_numbers() {
        let mut x = array![[1000.0, 1000.0, -1000.0], [0.0, 2f32.ln(), 0.0]];
        softmax_rows(&mut x);
        for (found, expected) in x.iter().zip([0.5, 0.5, 0.0, 0.25, 0.5, 0.25]) {
            assert!((found - expected).abs() < 1e-6, "{x}");
        }
    }

    #[test]
    fn the_two_forms_of_gelu_are_close_and_not_the_same() {
        let mut exact = array![[-1.0_f32, 0.5, 2.0]];
        let mut tanh = exact.clone();
        Activation::Gelu.apply(&mut exact);
        Activation::GeluTanh.apply(&mut tanh);
        // x·Φ(x) with Φ from tables.
        for (found, expected) in exact.iter().zip([-0.158_655, 0.345_731, 1.954_5]) {
            assert!((found - expected).abs() < 1e-5, "{exact}");
        }
        let apart = (&exact - &tanh).mapv(f32::abs).sum();
        assert!(apart > 1e-5 && apart < 2e-3, "{apart}");
    }
}
