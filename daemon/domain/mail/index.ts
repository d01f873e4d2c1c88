/** E-mail to people, sent if the operator has configured a mail server. */

export { countPosted, hasRoomFor, Outbox, post, postNothing } from "./outbox.ts";
export { mailPersonal } from "./personal.ts";
export { planMail } from "./plan.ts";
export type { EmailKind } from "./templates.ts";
