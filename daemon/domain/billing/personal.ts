/** Personal data in the billing tables. */
import type { PersonalTable } from "../../db/personal.ts";
import { billingCheckouts } from "./table.ts";

export const billingPersonal: readonly PersonalTable[] = [
  { table: billingCheckouts, ids: [billingCheckouts.user_id], end: "kept" },
];
