/** Personal data in the tables of authorized applications. */
import type { PersonalTable } from "../../db/personal.ts";
import { grants } from "./table.ts";

export const oauthPersonal: readonly PersonalTable[] = [
  { table: grants, ids: [grants.user_id], secrets: ["code_sha256", "code_challenge"], end: "deleted" },
];
