/** Hash sources of a Content-Security-Policy. */
import { createHash } from "node:crypto";

/** Allows the inline style or script with this text. */
export const hashSource = (text: string): string => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;
