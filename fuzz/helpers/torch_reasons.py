"""List the documented differences between poolgrad.torch and torch. Each reason is a sentence of docs/torch.md; a test compares them."""

from __future__ import annotations

REASONS = {
    "nan": "torch returns the index of the last NaN of a window, poolgrad of the first.",
    "dtype": "torch has no kernel for this dtype in this pool; poolgrad takes every real dtype in every rank.",
    "long": "torch refuses a window that is longer than the padded axis; poolgrad returns no output along it.",
    "padding": "torch refuses padding of more than half a window; poolgrad takes it while each window holds a cell.",
    "halves": "torch rounds sums of halves in places; poolgrad adds in a wider type and rounds once.",
    "wrapped": "torch wraps an int64 sum that leaves int64; poolgrad returns the exact mean, and refuses one that the dtype does not hold.",
    "overflow": "torch and poolgrad add in different orders, so near the largest float a partial sum may overflow in one of them.",
    "lp sign": "torch returns NaN or a signed sum for norms of negative cells if norm_type is not even; poolgrad returns the norm.",
    "lp ceil": "torch scales windows that ceil_mode cuts off; poolgrad sums the cells there are.",
    "lp zero": "torch's derivative of lp_pool is NaN where a window holds zeros alone; poolgrad's is 0.",
    "lp kink": "torch's derivative of lp_pool with norm_type 1 is that of the plain sum at cells of 0; poolgrad's is 0 there.",
    "lp dtype": "torch takes integers in lp_pool and returns float32; poolgrad refuses them.",
    "lp norm": "torch takes any norm_type; poolgrad takes positive finite numbers.",
    "repeats": "torch's max_unpool keeps one of several values for a cell but sends a gradient to each; poolgrad's `sum` adds "
    "them up and its `assign` keeps the last, with the gradient that belongs to it.",
    "unpool index": "torch takes indices of int64 alone in max_unpool; poolgrad takes every integer dtype.",
    "unpool ignored": "torch takes zero, negative and superfluous numbers in kernel_size, stride and padding of max_unpool; poolgrad refuses them.",
    "unpool nowhere": "torch takes any indices in max_unpool if the result has no cells; poolgrad refuses values that have no cell.",
    "divisor": "torch takes integers as divisor_override; poolgrad takes any finite number but 0.",
    "one": "torch wants an int or one size per axis as output_size; poolgrad also takes a NumPy integer, a list of one size, and None.",
    "room": "torch refuses fractional windows with kernel_size where output_size + kernel_size - 1 is more than the axis; "
    "poolgrad draws them while each fits the axis.",
    "no windows": "torch takes no windows, and windows of no cells, in fractional pools; poolgrad refuses them.",
    "samples": "torch wants _random_samples in the dtype of the input; poolgrad takes every floating dtype.",
    "both sizes": "torch prefers output_size if output_ratio comes too; poolgrad refuses both at once.",
    "flags": "torch takes any truth value as return_indices; poolgrad takes bools.",
    "tensor sizes": "torch takes tensors of one integer as sizes; poolgrad takes integers of Python and NumPy.",
    "no cell": "torch returns -inf, and an index outside the plane, for a window that dilation leaves without a cell; poolgrad refuses "
    "it.",
    "negated": "torch's max_pool1d ignores the sign of negated views (`torch._neg_view`); poolgrad reads them.",
    "layout": 'torch refuses some strides in three dimensions ("Unsupported memory format"); poolgrad reads every layout.',
    "quantised": "torch pools quantised and nested tensors in places; poolgrad refuses them: call `dequantize` or `to_padded_tensor` first.",
    "nothing": "torch takes every dtype where the result has no cells; poolgrad takes the dtypes that it pools.",
    "empty mean": "torch returns NaN for an adaptive mean of size 1 over no cells; poolgrad refuses an axis without cells.",
    "more samples": "torch takes _random_samples for more planes than there are; poolgrad wants one for each plane.",
    "too large": "torch takes sizes beyond the memory where the result has no cells; poolgrad refuses them.",
    "large": "torch refuses sizes beyond 32 bits; poolgrad takes sizes of up to 62 bits.",
}

# Texts of torch's refusals, with the reason for which poolgrad takes the call. The loop over windows is then the oracle.
OURS_ALONE = [
    (r"not implemented for|could not infer output dtype", "dtype"),
    (
        r"[Oo]utput size is too small|too small to|Invalid computed output size|exceeds the size|smaller than kernel size",
        "long",
    ),
    (r"pad(ding)? should be at most half|pad should be smaller than or equal to half", "padding"),
    (r"elements in indices should be type int64", "unpool index"),
    (r"argument 'divisor_override'.*must be int, not float", "divisor"),
    (r"has no len|output_size must|output_size\.size\(\) must|must either be a single Int", "one"),
    (r"Unsupported memory format", "layout"),
    (r"too large relative to input", "room"),
    (r"Expect _random_samples to have the same dtype", "samples"),
    (r"without overflow|Overflow when unpacking|Storage size calculation overflowed", "large"),
]

# Texts of poolgrad's refusals, with the reason for which torch takes the call.
TORCHS_ALONE = [
    (r"^lp_pool\dd: input: got dtype torch\.(u?int\d+|bool)", "lp dtype"),
    (r"^lp_pool\dd: norm_type: got (-|inf|nan|True|False|0)", "lp norm"),
    (r"^max_unpool\dd: (stride|padding|kernel_size): got .*, wanted .*one per pooled axis", "unpool ignored"),
    (r"^max_unpool\dd: indices: got .*, wanted no positions", "unpool nowhere"),
    (r"input: got dtype (float8|complex|bits|torch\.bool)", "nothing"),
    (
        r"^fractional_\w+: (kernel_size|output_size|output_ratio): got .*, wanted (an integer|a number|sizes) .*at least 1",
        "no windows",
    ),
    (r"^fractional_\w+: output_size: got .*, wanted either output_size or output_ratio", "both sizes"),
    (r"^(max|min)_pool\dd: padding: got window .* without a cell", "no cell"),
    (r"input: got .* for a mean of .*, wanted a mean from", "wrapped"),
    (r"^adaptive_avg_pool\dd: input: got shape .*, wanted at least one cell", "empty mean"),
    (r"_random_samples: got .*, wanted floats of shape", "more samples"),
    (r": got .*, wanted (a result that fits the memory|at most the .* bytes of memory)", "too large"),
    (r"input: got a (quantised|nested) tensor", "quantised"),
    (r"return_indices: got .*, wanted a bool", "flags"),
    (r": got \S*tensor\(", "tensor sizes"),
]
