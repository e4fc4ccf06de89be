// The words of device/program_table.h for the functions of src/kernels that launch kernels.
#pragma once

#include "device/program_table.h"

namespace hybridnet::kernels::on_device {

using device::block_kernel_line, device::element_name, device::include_line, device::kernel_line, device::ProgramTable;

}  // namespace hybridnet::kernels::on_device
