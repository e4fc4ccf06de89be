// All that translated PTX uses. program.py compiles this header once for all programs of a process.
#pragma once

#include "ptx_approximate.h"
#include "ptx_bits.h"
#include "ptx_block.h"
#include "ptx_convert.h"
