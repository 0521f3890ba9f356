// An OpenID provider on a loopback port, made with oidc-provider. Prints its address; ends with its standard input.
import { createServer } from 'node:http'
import Provider from 'oidc-provider'

const { resources, opaque } = JSON.parse(process.argv[2])
const server = createServer()
await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
const issuer = `http://127.0.0.1:${server.address().port}`

const provider = new Provider(issuer, {
  clients: [{ client_id: 'memory', client_secret: 'hush', grant_types: [], response_types: [], redirect_uris: [] }],
  scopes: ['openid', 'offline_access', 'read', 'write', 'delete', 'export'],
  pkce: { required: () => true },
  findAccount: (_context, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
  // The persona is named after the account.
  extraTokenClaims: (_context, token) => ({ personas: [token.accountId] }),
  ttl: { AccessToken: 600, AuthorizationCode: 60, Grant: 600, IdToken: 600, Interaction: 600, RefreshToken: 600, Session: 600 },
  features: {
    registration: { enabled: true },
    introspection: { enabled: true },
    resourceIndicators: {
      enabled: true,
      useGrantedResource: () => true,
      getResourceServerInfo: (_context, resource) => ({
        scope: 'read write delete export',
        audience: resources[resource] ?? resource,
        accessTokenFormat: opaque ? 'opaque' : 'jwt',
        ...(opaque ? {} : { jwt: { sign: { alg: 'RS256' } } }),
      }),
    },
  },
})
server.on('request', provider.callback())
console.log(issuer)
process.stdin.resume().on('end', () => process.exit(0))
