/**
 * HybridNet for Java: exported models, arrays, operators and gradients, without Python.
 *
 * <p>{@link org.hybridnet.Model} runs what {@code HybridBlock.export()} wrote, loops included,
 * {@link org.hybridnet.Session} does so without allocations, and {@link org.hybridnet.Batcher} for many threads at once; {@link org.hybridnet.NDArray} holds its inputs and outputs; {@link org.hybridnet.Operator} runs
 * any operator by its name; {@link org.hybridnet.Autograd} computes gradients, {@link org.hybridnet.Trainer} applies them. Objects own memory
 * outside Java's heap: close them, best by {@code try (...)}. What is forgotten is freed after the
 * garbage collector has found it. All methods may be called from any thread, also many at once on
 * one object. A failure is a {@link org.hybridnet.HybridNetError}; a closed object is an {@link
 * java.lang.IllegalStateException}.
 */
package org.hybridnet;
