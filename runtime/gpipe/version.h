/* gpipe/version.h - which version this is. See gpipe.h for what holds everywhere. */
#ifndef GP_PUBLIC_VERSION_H
#define GP_PUBLIC_VERSION_H

#define GP_VERSION "0.1.0"

#endif
