/** A timestamp as a query parameter. */
import { Type } from "@sinclair/typebox";

/** RFC 3339 or unix seconds. */
export const moment = (description: string) =>
  Type.Optional(
    Type.String({
      pattern: "^(\\d{1,12}(\\.\\d+)?|\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d(:\\d\\d(\\.\\d+)?)?(Z|[+-]\\d\\d:\\d\\d))$",
      maxLength: 40,
      description,
    }),
  );
