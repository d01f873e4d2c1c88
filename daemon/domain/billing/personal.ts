/** Owns what the tables of billing say of people. */
import type { PersonalTable } from "../../db/personal.ts";
import { billingCheckouts } from "./table.ts";

export const billingPersonal: readonly PersonalTable[] = [
  { table: billingCheckouts, ids: [billingCheckouts.user_id], end: "kept" },
];
