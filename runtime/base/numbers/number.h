/* base/numbers/number.h - decimal numbers of files and of the environment, which no locale
 * changes. */
#ifndef GP_BASE_NUMBERS_NUMBER_H
#define GP_BASE_NUMBERS_NUMBER_H

/* Read a number as strtod does in the locale "C", whatever locale a script has set. */
double gp_number_read(const char *text, char **end);

#endif
