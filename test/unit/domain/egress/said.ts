/** Feeds an inspector a connection that is allowed to `allowed.example` only. */
import { Inspector, NotThisName } from "../../../../daemon/domain/egress/inspector.ts";

export const NAME = "allowed.example";
export const EVIL_NAME = "evil.example";

export const bytesOf = (text: string) => Buffer.from(text, "latin1");

export const get = (host: string, more = "", line = "GET / HTTP/1.1") => `${line}\r\nHost: ${host}\r\n${more}\r\n`;

/** The bytes passed, and the reason of a refusal. Text is bytes of latin-1; an `answer` is the server's. */
export function say(...pieces: (string | Buffer | { answer: Buffer })[]) {
  const inspector = new Inspector(NAME);
  let out = "";
  try {
    for (const piece of pieces) {
      const passed =
        typeof piece === "object" && "answer" in piece
          ? inspector.answered(piece.answer)
          : inspector.push(Buffer.isBuffer(piece) ? piece : bytesOf(piece));
      out += passed.toString("latin1");
    }
    return { out, refused: null, presented: null };
  } catch (error) {
    if (!(error instanceof NotThisName)) throw error;
    return { out, refused: error.reason, presented: error.presented };
  }
}
