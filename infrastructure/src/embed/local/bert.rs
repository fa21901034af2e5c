//! The forward pass of BERT (Devlin et al. 2019) and of what shares its shape, pooled to a vector a text.
//!
//! The tokens of several texts stand below one another in one matrix, without padding: all but attention is done for them together.

use ndarray::{Array1, Array2, ArrayView2, Axis, Slice};
use tidemark_domain::memory::embedding::Embedding;

use super::files::{ModelFiles, Pooling};
use super::layers::{Activation, LayerNorm, Linear, softmax_rows};
use super::weights::Weights;

/// A sentence model, loaded.
pub(super) struct Bert {
    words: Array2<f32>,
    /// With the vector of the only token type that is used.
    positions: Array2<f32>,
    norm: LayerNorm,
    layers: Vec<Layer>,
    pooling: Pooling,
}

struct Layer {
    query: Linear,
    key: Linear,
    value: Linear,
    output: Linear,
    norm: LayerNorm,
    up: Linear,
    activation: Activation,
    down: Linear,
    last_norm: LayerNorm,
    heads: usize,
}

impl Bert {
    /// The error says what the weights lack.
    pub(super) fn load(files: &ModelFiles) -> Result<Self, String> {
        let config = &files.config;
        let (size, eps) = (config.hidden_size, config.layer_norm_eps);
        let weights = Weights::of(&files.weights)?;
        let activation = Activation::parse(&config.hidden_act)
            .ok_or_else(|| format!("hidden_act {} cannot be computed", config.hidden_act))?;
        let types = weights
            .matrix("embeddings.token_type_embeddings.weight", 2, size)
            .or_else(|_| weights.matrix("embeddings.token_type_embeddings.weight", 1, size))?;
        let positions = weights.matrix(
            "embeddings.position_embeddings.weight",
            config.max_position_embeddings,
            size,
        )?;
        let first = files.first_position;
        Ok(Self {
            words: weights.matrix("embeddings.word_embeddings.weight", config.vocab_size, size)?,
            positions: &positions.slice_axis(Axis(0), range(first, files.max_tokens))
                + &types.row(0),
            norm: LayerNorm::load(&weights, "embeddings.LayerNorm", size, eps)?,
            layers: (0..config.num_hidden_layers)
                .map(|number| Layer::load(files, &weights, number, activation))
                .collect::<Result<_, _>>()?,
            pooling: files.pooling,
        })
    }

    /// How many numbers a vector has.
    pub(super) fn dimension(&self) -> usize {
        self.words.ncols()
    }

    /// The vectors of texts, each of which is 1 to `max_tokens` tokens. None where the model's weights give a vector without direction.
    pub(super) fn embed(&self, texts: &[Vec<u32>]) -> Vec<Option<Embedding>> {
        let lengths: Vec<usize> = texts.iter().map(Vec::len).collect();
        let mut x = Array2::zeros((lengths.iter().sum(), self.dimension()));
        let tokens = texts.iter().flat_map(|text| text.iter().enumerate());
        for (mut row, (position, &token)) in x.rows_mut().into_iter().zip(tokens) {
            // A tokenizer of another model may know more words.
            let word = (token as usize).min(self.words.nrows() - 1);
            row += &self.words.row(word);
            row += &self.positions.row(position);
        }
        self.norm.apply(&mut x);
        for layer in &self.layers {
            layer.apply(&mut x, &lengths);
        }
        let mut from = 0;
        lengths
            .iter()
            .map(|length| {
                let rows = x.slice_axis(Axis(0), range(from, *length));
                from += length;
                let pooled = match self.pooling {
                    Pooling::Mean => rows.sum_axis(Axis(0)),
                    Pooling::First => rows.row(0).to_owned(),
                };
                direction(&pooled)
            })
            .collect()
    }
}

fn range(from: usize, length: usize) -> Slice {
    Slice::from(from..from + length)
}

fn part(x: &Array2<f32>, rows: Slice, columns: Slice) -> ArrayView2<'_, f32> {
    let mut part = x.slice_axis(Axis(0), rows);
    part.slice_axis_inplace(Axis(1), columns);
    part
}

fn direction(vector: &Array1<f32>) -> Option<Embedding> {
    Embedding::of(vector.as_slice()?)
}

impl Layer {
    fn load(
        files: &ModelFiles,
        weights: &Weights<'_>,
        number: usize,
        activation: Activation,
    ) -> Result<Self, String> {
        let config = &files.config;
        let (size, inner) = (config.hidden_size, config.intermediate_size);
        let name = |part: &str| format!("encoder.layer.{number}.{part}");
        let square = |part: &str| Linear::load(weights, &name(part), size, size);
        let norm = |part: &str| LayerNorm::load(weights, &name(part), size, config.layer_norm_eps);
        Ok(Self {
            query: square("attention.self.query")?,
            key: square("attention.self.key")?,
            value: square("attention.self.value")?,
            output: square("attention.output.dense")?,
            norm: norm("attention.output.LayerNorm")?,
            up: Linear::load(weights, &name("intermediate.dense"), size, inner)?,
            activation,
            down: Linear::load(weights, &name("output.dense"), inner, size)?,
            last_norm: norm("output.LayerNorm")?,
            heads: config.num_attention_heads,
        })
    }

    fn apply(&self, x: &mut Array2<f32>, lengths: &[usize]) {
        let attended = self.attention(x, lengths);
        *x += &self.output.apply(&attended.view());
        self.norm.apply(x);
        let mut inner = self.up.apply(&x.view());
        self.activation.apply(&mut inner);
        *x += &self.down.apply(&inner.view());
        self.last_norm.apply(x);
    }

    /// Each token looks at the tokens of its own text.
    fn attention(&self, x: &Array2<f32>, lengths: &[usize]) -> Array2<f32> {
        let width = x.ncols() / self.heads;
        let query = self.query.apply(&x.view()) / (width as f32).sqrt();
        let key = self.key.apply(&x.view());
        let value = self.value.apply(&x.view());
        let mut attended = Array2::zeros(x.dim());
        let mut from = 0;
        for length in lengths {
            for head in 0..self.heads {
                let rows = range(from, *length);
                let columns = range(head * width, width);
                let mut looks = part(&query, rows, columns).dot(&part(&key, rows, columns).t());
                softmax_rows(&mut looks);
                let mut target = attended.slice_axis_mut(Axis(0), rows);
                target
                    .slice_axis_mut(Axis(1), columns)
                    .assign(&looks.dot(&part(&value, rows, columns)));
            }
            from += length;
        }
        attended
    }
}
