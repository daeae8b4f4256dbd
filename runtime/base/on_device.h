/* base/on_device.h - for inline functions of C that kernels on a GPU call too. */
#ifndef GP_BASE_ON_DEVICE_H
#define GP_BASE_ON_DEVICE_H

/* It stands before the return type. Only .cu files are C++: their headers define __device__. */
#ifdef __cplusplus
#define GP_ON_DEVICE __device__
#else
#define GP_ON_DEVICE
#endif

#endif
