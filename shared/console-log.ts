/** Limits of a response with lines of a sandbox's console. */

/** A response ends once it has this many bytes of text. */
export const LOG_ANSWER_BYTES = 256 * 1024;
/** Maximum length of a line's text; longer lines are truncated. */
export const LOG_LINE_BYTES = 8 * 1024;
