/** A condition: the asker owns the conversation, since nothing is read across tenants (SPEC 1.1). Binds id and tenant. */
export const OWNED = 'EXISTS (SELECT 1 FROM conversation AS owned WHERE owned.id = ? AND owned.tenant = ?)';

/** The values of a JSON list, bound as one: a Durable Object takes few values a statement. */
export const LISTED = '(SELECT value FROM json_each(?))';
