/** Owns what is kept of people with the applications that they have let in. */
import type { PersonalTable } from "../../db/personal.ts";
import { grants } from "./table.ts";

export const oauthPersonal: readonly PersonalTable[] = [
  { table: grants, ids: [grants.user_id], secrets: ["code_sha256", "code_challenge"], end: "deleted" },
];
