/** Bounds of an answer with lines of a sandbox's console. */

/** Bytes of text after which an answer ends. */
export const LOG_ANSWER_BYTES = 256 * 1024;
/** Longest text of a line; a longer one is cut. */
export const LOG_LINE_BYTES = 8 * 1024;
