/** Personal data in the mail table. */
import type { PersonalTable } from "../../db/personal.ts";
import { mails } from "./table.ts";

export const mailPersonal: readonly PersonalTable[] = [
  { table: mails, ids: [mails.user_id], addresses: [mails.to_address], end: "deleted", isHere: true },
];
