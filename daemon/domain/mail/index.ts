/** Owns mail: what is written to people, and that it is sent where the operator has named a server. */
export type { LetterKind } from "./letters.ts";
export { countPosted, hasRoomFor, Outbox, post, postNothing } from "./outbox.ts";
export { mailPersonal } from "./personal.ts";
export { planMail } from "./plan.ts";
