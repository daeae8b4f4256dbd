/* bindings/stop.h - SIGTERM and SIGHUP: reported before they end the process, or kept for the end
 * of a step. */
#ifndef GP_BINDINGS_STOP_H
#define GP_BINDINGS_STOP_H

/* Report the signal before it ends the process. For the program; in gpipe.so the host's own
 * handlers stay in charge until a script asks for one. */
void gp_stop_install(void);

#endif
